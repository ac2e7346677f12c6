/** The parts of a route, requested from their real back-ends and merged as the gateway does it. */
import { type Composable, compileParts } from '../app/routes/compile-parts.ts'
import type { Config } from '../config/schema/config.ts'
import { hasParameters, takes } from '../config/schema/public-path.ts'
import { mountOf, pathsOf, routeSettings, upstreamPathOf } from '../config/schema/resolved.ts'
import { credentialOf, type RouteConfig } from '../config/schema/routes.ts'
import type { GatewayError } from '../errors.ts'
import type { Json } from '../json/values.ts'
import { merge, withMissing } from '../proxy/merge-parts.ts'
import { gather, type Part, type Parts } from '../proxy/parts.ts'
import { createRewrite } from '../proxy/path.ts'
import { tokenNamesOf } from '../proxy/token-names.ts'
import type { ShapeContext } from '../shaping/shape.ts'
import {
  clientHeaders,
  clientOf,
  describeFailure,
  type LiveUpstreams,
  type Report,
  reporting
} from './live-upstreams.ts'

/** A route, or the profile endpoint. */
export type LiveTarget = Composable & Partial<RouteConfig>

export interface LiveOptions {
  /**
   * By name, in lower case. The route's upstream gets all of them; a part at another one gets them
   * as those of a client, and its credential.
   */
  readonly headers: Readonly<Record<string, string>>
  /**
   * At the upstream, maybe with a query; of a route with parts only, the public one. That of the
   * route without it.
   */
  readonly path?: string | undefined
  /** For the shapes of parts. */
  readonly context: ShapeContext
  readonly report: Report
}

export interface MergedResponse {
  /** The input of the route's shape. */
  readonly whole: Json
  readonly parts: readonly string[]
  /** Parts that are not required and have failed. */
  readonly missing: readonly string[]
  /** Adds the list of missing parts to the shaped response. */
  readonly complete: (shaped: Json) => Json
}

/** Thrown for a path from which those of the parts cannot be made. */
export class NoTarget extends Error {}

interface Surroundings {
  readonly name: string
  readonly route: LiveTarget
  readonly upstreams: LiveUpstreams
  readonly options: LiveOptions
}

/**
 * @returns undefined for a route without parts
 * @throws NoTarget
 */
export function createLiveParts(
  config: Config,
  { name, route, upstreams, options }: Surroundings
): ((response: Json) => Promise<MergedResponse>) | undefined {
  const services = {
    config,
    mount: mountOf(config),
    tokenNames: tokenNamesOf(config.gateway.envelope),
    upstream: (each: string) => upstreams.open(each),
    log: { warn: (_fields: object, message: string) => options.report(message) }
  }
  const { maxShaped } = routeSettings(config, name, route)
  const parts = compileParts(services, route, options.context.wrap, maxShaped)
  if (parts === undefined) return undefined
  const target = publicTargetOf(config, route, options.path)
  const asked = { ...parts, parts: parts.parts.map(livePart(route, parts, options)) }
  const onMissing = ({ name: part }: { readonly name: string }, error: GatewayError) =>
    options.report(`the part "${part}" is missing: ${describeFailure(error)}`)
  return async response => {
    const gathered = await gather(asked, {
      target,
      headers: clientHeaders(options.headers),
      caller: clientOf(config),
      signal: new AbortController().signal,
      onMissing
    })
    const { value, missing } = merge(response, parts, gathered)
    return {
      whole: value,
      parts: Object.keys(route.parts),
      missing,
      complete: shaped => withMissing(shaped, parts, missing)
    }
  }
}

/** With the headers that the command was given, as far as the part's upstream may get them. */
function livePart(
  route: LiveTarget,
  { parts }: Parts,
  { headers, report }: LiveOptions
): (part: Part) => Part {
  const credentials = parts.map(({ upstream }) => credentialOf(upstream.config.credential))
  // A session has one credential, which no back-end of another source gets.
  const source = credentials.find(({ as }) => as !== 'none')?.from
  return part => {
    const { as, from } = credentialOf(part.upstream.config.credential)
    const isOwn = route.parts[part.name]?.upstream === route.upstream
    const credential = from === source ? headers[credentialHeader(as)] : undefined
    const added = isOwn
      ? headers
      : credential !== undefined && { [credentialHeader(as)]: credential }
    return {
      ...part,
      upstream: reporting(part.upstream, report, ` (the part "${part.name}")`),
      toHeaders: (...request) => ({ ...part.toHeaders(...request), ...added })
    }
  }
}

/** @param as `none`, `bearer`, `cookies` or `header:NAME` */
function credentialHeader(as: string): string {
  if (as === 'cookies') return 'cookie'
  return as === 'bearer' ? 'authorization' : as.replace('header:', '')
}

function publicPathsOf(config: Config, { path }: LiveTarget): string[] {
  return pathsOf(config.routes, path).map(each => mountOf(config) + each)
}

/** The public path, and the query, of which those of the parts are made. @throws NoTarget */
function publicTargetOf(config: Config, route: LiveTarget, path: string | undefined): string {
  const publicPaths = publicPathsOf(config, route)
  const [publicPath = ''] = publicPaths
  const isFixed = !publicPath.endsWith('*') && !hasParameters(publicPath)
  const [typed, query] = path === undefined ? [undefined, ''] : splitQuery(path)
  const { toPublic } = createRewrite(publicPaths, upstreamPathOf(route), '')
  const named = route.upstream === undefined || typed === undefined ? typed : toPublic(typed)
  const target = named ?? (isFixed ? publicPath : undefined)
  if (target !== undefined && publicPaths.some(each => takes(each, target))) {
    return target + query
  }
  throw new NoTarget(`The paths of its parts are made of ${publicPath}: choose one with --path.`)
}

/** The query with its `?`. */
function splitQuery(target: string): [path: string, query: string] {
  const mark = target.indexOf('?')
  return mark < 0 ? [target, ''] : [target.slice(0, mark), target.slice(mark)]
}
