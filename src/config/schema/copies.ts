/** Keys of a route with which one response of the upstream serves several requests. */
import { flag, oneOf } from './primitives.ts'

export const copies = {
  doubleClicks: oneOf(['run', 'share'], {
    default: 'run',
    description:
      'What happens to a request that changes something while an identical one of the same ' +
      'session (method, path, query, body, headers) is running. `run`: it runs too. `share`: it ' +
      'waits for the response to the first one and gets the same. Bodies above 1 MiB always run.'
  }),
  coalesce: flag({
    default: false,
    description:
      'Send identical GET requests that one session makes at the same time to the upstream only ' +
      'once. Responses above 1 MiB, event streams and responses that set cookies are not shared.'
  })
}
