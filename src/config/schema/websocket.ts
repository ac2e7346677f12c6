/** `websocket` of a route: whether and how it takes upgrades to WebSocket. */
import { closed, maybe, size } from './primitives.ts'

export const websocketSchema = maybe(
  closed(
    {
      maxMessage: size('The largest message, either way. A larger one ends the connection.', {
        default: '1MiB'
      })
    },
    'Takes upgrades to WebSocket, beside ordinary GETs; `websocket: {}` is enough.'
  )
)
