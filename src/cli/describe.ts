/** `types` and `openapi`: describe the endpoints of the console, from config alone. */
import { loadConfig } from '../config/load/load.ts'
import type { Config } from '../config/schema/config.ts'
import { openApi } from '../api-docs/openapi.ts'
import { typeDeclarations } from '../api-docs/types.ts'
import { printableLines } from '../observability/unprintable.ts'
import { jsonText, writeOutput } from './output.ts'
import type { Command } from './command.ts'

const writing = (summary: string, example: string, text: (config: Config) => string): Command => ({
  summary,
  ways: [{ takes: ['output'] }],
  details: `
Reads only the config folder: no gateway has to run.

Examples:
  ${example}`,
  options: {
    output: {
      type: 'string',
      short: 'o',
      value: 'FILE',
      description: 'the file to write (default: standard output)'
    }
  },
  run: async ({ config, values: { output } }) => {
    writeOutput(output, text(loadConfig(config, process.env)))
    return 0
  }
})

export const types = writing(
  'write TypeScript types of all that the console can call',
  'console-gateway types -o src/services/gateway.d.ts',
  // Such characters stand in its texts and comments alone, where their escapes mean the same.
  config => printableLines(typeDeclarations(config))
)
export const openapi = writing(
  'write an OpenAPI 3.1 document of all that the console can call',
  'console-gateway openapi -o openapi.json',
  config => jsonText(openApi(config))
)
