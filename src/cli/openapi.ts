import { openApi } from '../api-docs/openapi.ts'
import { loadConfig } from '../config/read/load.ts'
import { type Invocation, jsonText } from './command.ts'

export async function openapi({ configs, io }: Invocation) {
  return { painted: jsonText(openApi(loadConfig(configs, io.env))) }
}
