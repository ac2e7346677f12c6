/** `websocket` of a route: whether and how it takes upgrades to WebSocket. */
import { Type } from 'typebox'
import { closed, size, whole } from './primitives.ts'

export const websocketSchema = Type.Optional(
  closed(
    {
      maxMessage: size({
        default: '1MiB',
        description:
          'The largest message, in both directions. A larger one ends the connection (close ' +
          'code 1009).'
      }),
      perUser: whole({
        minimum: 1,
        maximum: 10_000,
        default: 10,
        description:
          'How many connections a user may have (on a public route: an address), in each ' +
          'process. One more is answered 429 `limit.exceeded`.'
      }),
      connections: whole({
        minimum: 1,
        maximum: 100_000,
        default: 1000,
        description:
          'How many connections the route has in all, in each process. One more is answered ' +
          '503 `overloaded`. They are separate from the upstream’s `connections`.'
      })
    },
    {
      description:
        'Takes upgrades to WebSocket on this route, beside ordinary GETs. `websocket: {}` is ' +
        'enough. The connection ends with the session, the role, or maintenance of the route; ' +
        'it keeps a session alive only if the route has `touch: always`.'
    }
  )
)
