/** Compiles what routes, the profile and parts have in common. */
import { pathsOf } from '../../config/schema/resolved.ts'
import type { Upstream } from '../../proxy/upstream.ts'
import type { Live } from '../../session/types.ts'
import type { Sent } from '../../shaping/operation.ts'
import { compileShape, type Shape } from '../../shaping/shape.ts'
import type { Gateway } from '../gateway.ts'

/** With the mount, aliases too. */
export function publicPathsOf({ config, mount }: Gateway, path: string): string[] {
  return pathsOf(config.routes, path).map(each => mount + each)
}

export function upstreamOf({ config, upstream }: Gateway, name: string): Upstream {
  const found = config.routes.upstreams[name]
  if (found === undefined) throw new Error(`there is no upstream "${name}"`)
  return upstream(name, found)
}

export function shapeOf(gateway: Gateway, name: string | undefined): Shape | undefined {
  if (name === undefined) return undefined
  const { config, modules, watchShape } = gateway
  const onMissing = logMissing(gateway, name)
  const { shapes, paging } = config.routes
  const wrap = gateway.envelope.success
  const shape = compileShape(shapes[name] ?? [], { wrap, shapes, paging, modules, onMissing })
  if (watchShape === undefined) return shape
  return {
    ...shape,
    refusal: body => {
      watchShape(name, body)
      return shape.refusal(body)
    }
  }
}

/** Each path is logged once: the next response has the same fault. */
function logMissing({ log }: Gateway, shape: string): (path: string) => void {
  const logged = new Set<string>()
  return path => {
    if (logged.has(path)) return
    logged.add(path)
    log.warn(
      { event: 'shape.missing', shape, path },
      `shape ${shape}: unwrap found nothing at "${path}" of an answer, and goes on with null. ` +
        'Look at the answer with `console-gateway explain GET PATH --live`'
    )
  }
}

/**
 * Throws a GatewayError where the back-end's body reports an error.
 * @returns a promise where the shape has own code
 */
export type ShapeBody = (body: unknown, live: Live | undefined, sent: Sent) => unknown

interface ResponseShape {
  readonly shape: ShapeBody
  /** The response where the back-end's has no content: neither its code nor a contract is asked. */
  readonly shapeNothing: ShapeBody
}

/** Shapes responses of a route; without a name of a shape they stay as they are. */
export function responseShapeOf(
  gateway: Gateway,
  route: string,
  name: string | undefined
): ResponseShape {
  const shape = shapeOf(gateway, name)
  if (shape === undefined) return { shape: body => body, shapeNothing: () => null }
  const apply: ShapeBody = (value, live, sent) =>
    shape.apply(value, { ...sent, route, user: live?.session.identity })
  return {
    shape: (body, live, sent) => {
      const refusal = shape.refusal(body)
      if (refusal !== undefined) throw refusal
      return apply(body, live, sent)
    },
    shapeNothing: (nothing, live, sent) => apply(nothing, live, sent) ?? null
  }
}
