import { openApi } from '../api-docs/openapi.ts'
import { loadConfig } from '../config/read/load.ts'
import type { Invocation } from './command.ts'
import { jsonText } from './output.ts'

export async function openapi({ configs, io }: Invocation): Promise<void> {
  io.stdout.write(jsonText(openApi(loadConfig(configs, io.env))))
}
