/** Settings whose default is another setting: each such rule stands here once. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Config } from './config.ts'
import type { QueryConfig } from './request-mapping.ts'
import type { RouteConfig, RoutesConfig, UpstreamConfig } from './routes.ts'

/** The place of a file or folder that config names: in the last of its folders that has it. */
export function fileIn({ folder, bases }: Pick<Config, 'folder' | 'bases'>, name: string): string {
  const places = [folder, ...bases.toReversed()].map(each => resolve(each, name))
  return places.find(place => existsSync(place)) ?? resolve(folder, name)
}

/** The prefix of every public path; empty without `server.mount`. */
export function mountOf({ gateway }: Pick<Config, 'gateway'>): string {
  return gateway.server.mount ?? ''
}

export function pathsOf({ aliases }: Pick<RoutesConfig, 'aliases'>, path: string): string[] {
  return [path, ...Object.keys(aliases).filter(alias => aliases[alias] === path)]
}

export function upstreamPathOf({ path, rewrite }: Pick<RouteConfig, 'path' | 'rewrite'>): string {
  return rewrite ?? path
}

export function timeoutOf(
  { timeout }: Pick<RouteConfig, 'timeout'>,
  { responseTimeout }: Pick<UpstreamConfig, 'responseTimeout'>
): number {
  return timeout ?? responseTimeout
}

/** @param route of `routes.yaml`, or the profile endpoint, which has some of the same keys */
export function routeSettings(
  { gateway: { envelope }, limits: { sizes } }: Config,
  name: string,
  route: Partial<RouteConfig>
) {
  return {
    errorStatus: route.errorStatus ?? envelope.errorStatus,
    maxBody: route.maxBody ?? sizes.body,
    /** Whether a call keeps the session from going idle. */
    touch: (route.touch ?? defaultTouch(name, route)) === 'always'
  }
}

/** Requests that a page repeats by itself must not keep its session alive. */
function defaultTouch(name: string, { websocket }: Partial<RouteConfig>): 'always' | 'never' {
  return name === 'notices' || websocket !== undefined ? 'never' : 'always'
}

/** How the query of a route is changed, for requests that read and for all others. */
export interface QueryMaps {
  readonly reads?: QueryConfig
  readonly others?: QueryConfig
}

/** The route's own map; reads also get the paging on which console and upstream agree. */
export function queryMapsOf(
  { paging: sent, upstreams }: Pick<RoutesConfig, 'paging' | 'upstreams'>,
  { query, upstream }: Pick<RouteConfig, 'query' | 'upstream'>
): QueryMaps | undefined {
  const { paging: isPaged = true, ...others } = query ?? {}
  const taken = upstreams[upstream ?? '']?.paging
  const isAgreed = isPaged && sent !== undefined && taken !== undefined
  const isSame =
    sent?.page === taken?.page && sent?.size === taken?.size && sent?.firstPage === taken?.firstPage
  if (isAgreed && !isSame) {
    const reads = { ...others, paging: { ...sent, to: taken } }
    return query === undefined ? { reads } : { reads, others }
  }
  return query === undefined ? undefined : { reads: others, others }
}
