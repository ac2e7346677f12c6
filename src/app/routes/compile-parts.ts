/** A route's parts as the app needs them. */
import { timeoutOf } from '../../config/schema/resolved.ts'
import type { RouteConfig } from '../../config/schema/routes.ts'
import { requestHeaders } from '../../proxy/request-headers.ts'
import { createRewrite } from '../../proxy/path.ts'
import { compileQuery } from '../../proxy/query.ts'
import type { Wrap } from '../../shaping/operation.ts'
import type { Gateway } from '../gateway.ts'
import { publicPathsOf, responseShapeOf, upstreamOf } from './compile-common.ts'
import type { Part, Parts } from './parts.ts'

/** A route, or the profile, which has some of the same keys. */
type Composed = Pick<RouteConfig, 'path' | 'parts' | 'missing'> & Partial<RouteConfig>

/** Undefined for a route without parts. */
export function compileParts(
  gateway: Gateway,
  route: Composed & { readonly name: string; readonly maxBytes: number },
  wrap: Wrap
): Parts | undefined {
  const { tokenNames } = gateway
  const { maxBytes, passRefusedHeaders, passAuthorization, passCookies } = route
  const publicPaths = publicPathsOf(gateway, route.path)
  const changeOwn = queryChangeOf(route)
  const changeQuery = (query: string) => changeOwn(tokenNames.query?.strip(query) ?? query)
  const parts = Object.entries(route.parts).map(([name, part]): Part => {
    const upstream = upstreamOf(gateway, part.upstream)
    const isOwnUpstream = part.upstream === route.upstream
    return {
      name,
      upstream,
      toUpstream: targetOf(publicPaths, part, changeQuery),
      toHeaders: requestHeaders({
        identity: gateway.config.gateway.identity,
        tokenNames,
        upstream: upstream.config,
        shaped: true,
        ...(isOwnUpstream && { passRefusedHeaders, passAuthorization, passCookies })
      }),
      timeoutMs: timeoutOf(part, upstream.config),
      maxBytes,
      shape: responseShapeOf(gateway, route.name, part.shape, wrap).shape,
      unwrap: part.unwrap?.split('.') ?? [],
      into: part.into?.split('.') ?? [],
      isRequired: part.required,
      fallback: part.default
    }
  })
  return parts.length === 0
    ? undefined
    : { parts, into: route.into?.split('.') ?? [], missing: route.missing }
}

/** Where its path ends in `/*`, that stands for what the public path's `*` matched. */
function targetOf(
  publicPaths: readonly string[],
  { rewrite, query }: RouteConfig['parts'][string],
  changeQuery: (query: string) => string
): (target: string) => string {
  const { toUpstream } = createRewrite(publicPaths, rewrite, '')
  if (!query) return toUpstream
  return target => {
    const mark = target.indexOf('?')
    return toUpstream(target) + changeQuery(mark < 0 ? '' : target.slice(mark))
  }
}

/** Renames and paging are for the route's own upstream: that of a part has names of its own. */
function queryChangeOf({ query: { drop, set } = {} }: Composed): (query: string) => string {
  if (drop === undefined && set === undefined) return query => query
  return compileQuery({ ...(drop && { drop }), ...(set && { set }) })
}
