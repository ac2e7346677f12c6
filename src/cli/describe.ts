/** `openapi`: describes the endpoints of the console, from config alone. */
import { loadConfig } from '../config/read/load.ts'
import { openApi } from '../api-docs/openapi.ts'
import { jsonText, writeOutput } from './output.ts'
import type { Invocation } from './command.ts'

export async function openapi({
  config,
  values: { output },
  io
}: Invocation<{ readonly output?: string }>): Promise<number> {
  writeOutput(output, jsonText(openApi(loadConfig(config, io.env))), io)
  return 0
}
