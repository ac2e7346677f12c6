/** `types` and `openapi`: describe the endpoints of the console, from config alone. */
import { loadConfig } from '../config/load/load.ts'
import { openApi } from '../api-docs/openapi.ts'
import { typeDeclarations } from '../api-docs/types.ts'
import { printableLines } from '../observability/unprintable.ts'
import { jsonText, writeOutput } from './output.ts'
import type { Invocation } from './command.ts'

export async function types({ config, values: { output }, io }: Invocation): Promise<number> {
  // Such characters stand in its texts and comments alone, where their escapes mean the same.
  writeOutput(output, printableLines(typeDeclarations(loadConfig(config, io.env))), io)
  return 0
}

export async function openapi({ config, values: { output }, io }: Invocation): Promise<number> {
  writeOutput(output, jsonText(openApi(loadConfig(config, io.env))), io)
  return 0
}
