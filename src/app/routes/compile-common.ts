/** Compiles the parts that routes of config and the profile have in common. */
import type { ContractConfig } from '../../config/schema/contracts.ts'
import { pathsOf, timeoutOf, upstreamPathOf } from '../../config/schema/resolved.ts'
import type { RouteConfig } from '../../config/schema/routes.ts'
import type { Contract } from '../../contract/drift.ts'
import { createRewrite } from '../../proxy/path.ts'
import type { Upstream } from '../../proxy/upstream.ts'
import type { Wrap } from '../../shaping/operation.ts'
import { compileShape, type Shape } from '../../shaping/shape.ts'
import type { Gateway } from '../gateway.ts'
import { logMissing } from './response-log.ts'
import type { Shaping, Target } from './route.ts'

/** With the mount, aliases too. */
export function publicPathsOf({ config, mount }: Gateway, path: string): string[] {
  return pathsOf(config.routes, path).map(each => mount + each)
}

export function upstreamOf({ config, upstream }: Gateway, name: string): Upstream {
  const found = config.routes.upstreams[name]
  if (found === undefined) throw new Error(`there is no upstream "${name}"`)
  return upstream(name, found)
}

/** The way to the upstream. */
export function wayOf(
  gateway: Gateway,
  route: Pick<RouteConfig, 'path'> & Partial<RouteConfig>,
  upstreamName: string
): Pick<Target, 'upstream' | 'upstreamName' | 'rewrite' | 'timeoutMs' | 'timeOuts'> {
  const upstream = upstreamOf(gateway, upstreamName)
  const { config } = upstream
  const paths = publicPathsOf(gateway, route.path)
  return {
    upstream,
    upstreamName,
    rewrite: createRewrite(paths, upstreamPathOf(route), upstream.base),
    timeoutMs: timeoutOf(route, config),
    timeOuts: {
      idleTimeout: route.idleTimeout ?? config.idleTimeout,
      streamIdle: route.streamIdle ?? config.streamIdle,
      totalTimeout: route.totalTimeout ?? config.totalTimeout
    }
  }
}

export function shapeOf(
  { config, log, modules, watchShape }: Gateway,
  name: string | undefined,
  wrap: Wrap
): Shape | undefined {
  if (name === undefined) return undefined
  const onMissing = logMissing(log, name)
  const { shapes, paging } = config.routes
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

/** Shapes responses of a route; without a name of a shape they stay as they are. */
export function responseShapeOf(
  gateway: Gateway,
  route: string,
  name: string | undefined,
  wrap: Wrap
): Pick<Shaping, 'shape' | 'shapeNothing'> {
  const shape = shapeOf(gateway, name, wrap)
  if (shape === undefined) return { shape: body => body, shapeNothing: () => null }
  const apply: Shaping['shape'] = (value, live, sent) =>
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

/** @param dataName the member of the envelope that the contract is about */
export function contractOf(
  { config, drift }: Gateway,
  route: string,
  contract: ContractConfig | undefined,
  dataName: string | false
): Contract | undefined {
  const schema = config.contracts[route]
  if (contract === undefined || contract.mode === 'off' || schema === undefined) return undefined
  return drift.contract({ route, schema, mode: contract.mode, dataName })
}
