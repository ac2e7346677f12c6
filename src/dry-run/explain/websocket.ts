/** The rules for upgrades to WebSocket of a route, as decisions. */
import { inUnits } from '../../config/schema/primitives.ts'
import type { RouteConfig } from '../../config/schema/routes.ts'
import type { Path } from '../../config/schema/visit.ts'
import type { Decision, Locate } from './decision.ts'

interface Options {
  readonly route: Pick<Partial<RouteConfig>, 'websocket'>
  readonly path: Path
  readonly locate: Locate
}

/** @returns none for a route that refuses upgrades */
export function webSocketDecision(options: Options): Array<Omit<Decision, 'result'>> {
  const { route, path, locate } = options
  const { websocket } = route
  if (websocket === undefined) return []
  const { maxMessage, perUser, connections } = websocket
  const at = locate('routes', [...path, 'websocket'])
  return [
    {
      step: 'websocket',
      text: 'an upgrade to WebSocket is taken too, from pages of the console’s own origins',
      at,
      lines: [
        { text: `messages of ${inUnits('x-size', maxMessage)} at most, either way`, at },
        { text: `${perUser} connections of a user, ${connections} in all, in each process`, at },
        { text: 'ends with the session, the role and maintenance of the route', at }
      ]
    }
  ]
}
