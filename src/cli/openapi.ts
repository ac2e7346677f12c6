/** `openapi`: describes the endpoints of the console, from config alone. */
import { writeFileSync } from 'node:fs'
import { openApi } from '../api-docs/openapi.ts'
import { loadConfig } from '../config/read/load.ts'
import type { Invocation } from './command.ts'
import { jsonText } from './output.ts'
import { cannotWrite } from './replace-file.ts'

export async function openapi({
  configs,
  values: { output },
  io
}: Invocation<{ readonly output?: string }>): Promise<number> {
  const text = jsonText(openApi(loadConfig(configs, io.env)))
  if (output === undefined) {
    io.stdout.write(text)
    return 0
  }
  try {
    writeFileSync(output, text)
    return 0
  } catch (error) {
    throw cannotWrite(output, error)
  }
}
