/** The paths of routes at their upstreams, and the way back. */
import { createRewrite, type Rewrite } from '../../proxy/path.ts'
import type { ForwardedRoute, Route } from './route.ts'

/** @param mount the prefix of every public path */
export function rewriteOf({ paths, target }: ForwardedRoute, mount: string): Rewrite {
  const { upstream, upstreamPath } = target
  return createRewrite(
    paths.map(path => mount + path),
    upstreamPath,
    upstream.base
  )
}

/** @returns by an upstream's name and a path there, the public path of the first route that leads there */
export function createToPublic(routes: readonly Route[], mount: string) {
  const byUpstream = new Map<string, Rewrite[]>()
  for (const route of routes) {
    if (route.target === undefined) continue
    const { upstreamName } = route.target
    const rewrites = byUpstream.get(upstreamName) ?? []
    rewrites.push(rewriteOf(route, mount))
    byUpstream.set(upstreamName, rewrites)
  }
  return (upstream: string, path: string): string | undefined => {
    for (const { toPublic } of byUpstream.get(upstream) ?? []) {
      const found = toPublic(path)
      if (found !== undefined) return found
    }
    return undefined
  }
}
