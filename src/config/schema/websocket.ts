/** `websocket` of a route: whether and how it takes upgrades to WebSocket. */
import { closed, maybe, size, whole } from './primitives.ts'

export const websocketSchema = maybe(
  closed(
    {
      maxMessage: size(
        'The largest message, in both directions. A larger one ends the connection (close ' +
          'code 1009).',
        { default: '1MiB' }
      ),
      perUser: whole(
        'How many connections a user may have (on a public route: an address), in each ' +
          'process. One more is answered 429 `limit.exceeded`.',
        { minimum: 1, maximum: 10_000, default: 10 }
      ),
      connections: whole(
        'How many connections the route has in all, in each process. One more is answered ' +
          '503 `overloaded`. They are separate from the upstream’s `connections`.',
        { minimum: 1, maximum: 100_000, default: 1000 }
      )
    },
    'Takes upgrades to WebSocket on this route, beside ordinary GETs. `websocket: {}` is ' +
      'enough. The connection ends with the session, the role, or maintenance of the route; ' +
      'it keeps a session alive only if the route has `touch: always`.'
  )
)
