/** Settings whose default is another setting: each such rule stands here once. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from './config.ts'
import type { QueryConfig } from './request-mapping.ts'
import type { RouteConfig, RoutesConfig } from './routes.ts'

/** In the last folder that has it. */
export function fileIn({ folder, bases }: Pick<Config, 'folder' | 'bases'>, name: string): string {
  const places = [folder, ...bases.toReversed()].map(each => resolve(each, name))
  return places.find(place => existsSync(place)) ?? resolve(folder, name)
}

export function pathsOf({ aliases }: Pick<RoutesConfig, 'aliases'>, path: string): string[] {
  return [path, ...Object.keys(aliases).filter(alias => aliases[alias] === path)]
}

/** @param route of `routes.yaml`, or the profile endpoint, which has some of the same keys */
export function routeSettings(
  { gateway: { envelope }, limits: { sizes } }: Config,
  name: string,
  route: Partial<RouteConfig>
) {
  // Requests that a page repeats by itself must not keep its session alive.
  const isRepeated = name === 'notices' || route.websocket !== undefined
  return {
    errorStatus: route.errorStatus ?? envelope.errorStatus,
    maxBody: route.maxBody ?? sizes.body,
    touch: route.touch === undefined ? !isRepeated : route.touch === 'always'
  }
}

/** The route's own map; reads also get the paging on which console and upstream agree. */
export function queryMapsOf(
  { paging: sent, upstreams }: Pick<RoutesConfig, 'paging' | 'upstreams'>,
  { query, upstream }: Pick<RouteConfig, 'query' | 'upstream'>
): { readonly reads?: QueryConfig | undefined; readonly others?: QueryConfig | undefined } {
  const { paging: isPaged = true, ...own } = query ?? {}
  const others = query && own
  const to = upstreams[upstream ?? '']?.paging
  if (!isPaged || sent === undefined || to === undefined) return { reads: others, others }
  const isSame = sent.page === to.page && sent.size === to.size && sent.firstPage === to.firstPage
  return { reads: isSame ? others : { ...own, paging: { ...sent, to } }, others }
}
