/** A response as the console gets it: what its contract is about. */
import type { Config } from '../../config/schema/config.ts'
import { routeSettings } from '../../config/schema/resolved.ts'
import { parseKeepingDigits } from '../../json/digits.ts'
import type { Json } from '../../json/values.ts'
import { createEnvelope } from '../../shaping/envelope.ts'
import { compileShape, isWrapped } from '../../shaping/shape.ts'
import { CommandError } from '../command.ts'

/** Shaped by the route, and mostly without the envelope. */
export function shapedResponse(config: Config, name: string, body: unknown): Json {
  const { shapes, routes } = config.routes
  const route = routes[name]
  const steps = shapes[route?.shape ?? ''] ?? []
  const { dialect } = routeSettings(config, name, route ?? {})
  const envelope = createEnvelope({ ...config.gateway.envelope, dialect })
  const { refusal, apply } = compileShape(steps, { wrap: envelope.success, shapes })
  const refused = refusal(body)
  if (refused !== undefined) {
    throw new CommandError(`The response is a failure: ${refused.status}, ${refused.message}`)
  }
  const shaped = parseKeepingDigits(JSON.stringify(apply(body)) ?? 'null') as Json
  if (!isWrapped(steps, shapes) || envelope.dataName === false) return shaped
  return (shaped as Record<string, Json>)[envelope.dataName] as Json
}
