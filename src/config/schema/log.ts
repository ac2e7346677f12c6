/** `log` of `gateway.yaml`: level and format of the log. */
import { oneOf, section } from './primitives.ts'

export const log = section(
  {
    level: oneOf(
      ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
      'The lowest level that is logged. `debug` and `trace` help while you look for a fault.',
      { default: 'info' }
    ),
    format: oneOf(
      ['auto', 'json', 'pretty'],
      '`auto`: readable text on a terminal, otherwise JSON.',
      { default: 'auto' }
    )
  },
  'Logs are written to standard output.'
)
