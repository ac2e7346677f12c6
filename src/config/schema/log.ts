/** `log` of `gateway.yaml`: what is logged, and how. */
import { oneOf, section } from './primitives.ts'

export const log = section(
  {
    level: oneOf(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
      default: 'info',
      description: 'The least level that is written.'
    }),
    format: oneOf(['auto', 'json', 'pretty'], {
      default: 'auto',
      description: '`auto` is readable on a terminal and JSON elsewhere.'
    })
  },
  'Logs, on standard output.'
)
