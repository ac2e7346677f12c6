/** The answer of a request that goes to no upstream of its own. */
import type { Config } from '../../config/schema/config.ts'
import type { Path } from '../../config/schema/visit.ts'
import type { Locate, Location } from './decision.ts'

interface Answered {
  readonly config: Config
  /** Of the route or endpoint. */
  readonly name: string
  /** Its path in config. */
  readonly path: Path
  readonly locate: Locate
}

export function ownAnswer(
  { config, name, path, locate }: Answered,
  hasParts: boolean
): { readonly text: string; readonly at: Location } {
  if (answerOf(config, name) !== undefined) {
    return { text: 'the answer stands in config', at: locate('routes', [...path, 'answer']) }
  }
  const itself = `the gateway answers this itself (${name})`
  return { text: hasParts ? 'made of its parts only' : itself, at: locate('routes', path) }
}

function answerOf({ routes: { routes, endpoints } }: Config, name: string): unknown {
  if (name === 'login' || name === 'logout' || name === 'profile') return endpoints[name].answer
  return routes[name]?.answer
}
