/** Compiles what routes, the profile and parts have in common. */
import { pathsOf } from '../../config/schema/resolved.ts'
import type { Live } from '../../session/types.ts'
import type { Sent } from '../../shaping/module.ts'
import { compileShape, type Shape } from '../../shaping/shape.ts'
import type { Gateway } from '../gateway.ts'

/** With the mount, aliases too. */
export function publicPathsOf({ config, mount }: Gateway, path: string): string[] {
  return pathsOf(config.routes, path).map(each => mount + each)
}

export function shapeOf(gateway: Gateway, name: string): Shape {
  const { config, modules, warnOnce } = gateway
  const { shapes, paging } = config.routes
  const wrap = gateway.envelope.success
  const onMissing = (path: string) => {
    warnOnce(
      `shape ${name} ${path}`,
      { event: 'shape.missing', shape: name, path },
      `shape ${name}: unwrap found nothing at "${path}" of an answer, and goes on with null. ` +
        'Look at the answer with `console-gateway explain GET PATH --live`'
    )
  }
  return compileShape(shapes[name] ?? [], { wrap, shapes, paging, modules, onMissing })
}

/**
 * Throws a GatewayError where the back-end's body reports an error.
 * @param body undefined for a response without content, of which neither code nor contract is asked
 * @returns a promise where the shape has own code
 */
export type ShapeBody = (body: unknown, live: Live | undefined, sent: Sent) => unknown

/** Shapes responses of a route; without a name of a shape they stay as they are. */
export function responseShapeOf(
  gateway: Gateway,
  route: string,
  name: string | undefined
): ShapeBody {
  if (name === undefined) return (body = null) => body
  const { watchShape } = gateway
  const shape = shapeOf(gateway, name)
  return (body, live, sent) => {
    if (body !== undefined) {
      watchShape?.(name, body)
      const refusal = shape.refusal(body)
      if (refusal !== undefined) throw refusal
    }
    const use = { ...sent, route, user: live?.session.identity }
    return shape.apply(body ?? null, use) ?? null
  }
}
