/** The parts of a response: other upstreams, all asked at the same time, and merged into it. */
import type { FastifyRequest } from 'fastify'
import type { PartConfig } from '../../config/schema/proxied.ts'
import type { RouteConfig } from '../../config/schema/routes.ts'
import { GatewayError, toGatewayError } from '../../errors/errors.ts'
import { readJson } from '../../json/body.ts'
import { isRecord, type Json, type JsonRecord, put } from '../../json/values.ts'
import { createRewrite } from '../../proxy/path.ts'
import { requestHeaders } from '../../proxy/request-headers.ts'
import { hasNoContent, invalid, responseError } from '../../proxy/response.ts'
import type { Gateway } from '../gateway.ts'
import { reasonOf } from '../hooks/errors.ts'
import { forwardedForOf } from '../hooks/address.ts'
import { publicPathsOf, responseShapeOf } from './compile-common.ts'
import { createEnsuring, createOwnTokenReader } from './credentials.ts'

/** The parts of a route. */
export interface Parts {
  readonly parts: readonly Part[]
  /** The path of the route's own response; empty: the parts are added to that response. */
  readonly into: readonly string[]
}

type Composed = Pick<RouteConfig, 'path'> & Partial<RouteConfig> & { readonly name: string }

interface Part {
  readonly name: string
  readonly written: PartConfig
  /** The path of its value; empty: the members of its value are added to the response. */
  readonly into: readonly string[]
  /** @throws GatewayError, also for a response that is no whole success */
  readonly fetch: (request: FastifyRequest, signal: AbortSignal) => Promise<Json>
}

/** @param route or the profile @returns undefined for one without parts */
export function compileParts(gateway: Gateway, route: Composed): Parts | undefined {
  const parts = Object.entries(route.parts ?? {}).map(([name, written]): Part => {
    const into = written.into?.split('.') ?? []
    return { name, written, into, fetch: compileFetch(gateway, route, [name, written]) }
  })
  return parts.length === 0 ? undefined : { parts, into: route.into?.split('.') ?? [] }
}

function compileFetch(
  gateway: Gateway,
  route: Composed,
  [name, part]: [string, PartConfig]
): Part['fetch'] {
  const { tokenNames, sealedCookies, config } = gateway
  const { passHeaders, passCookies = [] } = route
  const upstream = gateway.upstream(part.upstream)
  const toHeaders = requestHeaders({
    identity: config.gateway.identity,
    tokenNames,
    upstream: upstream.config,
    credentialFor: gateway.credentialFor(part.upstream),
    shaped: true,
    ...(part.upstream === route.upstream && {
      passHeaders,
      passCookies: passCookies.filter(each => !sealedCookies.isSealed(part.upstream, each))
    })
  })
  const { toUpstream } = createRewrite(publicPathsOf(gateway, route.path), part.rewrite, '')
  const shape = responseShapeOf(gateway, route.name, part.shape)
  const maxBytes = config.limits.sizes.shape
  const ensureCredential = createEnsuring(gateway, part.upstream)
  const readOwnToken = createOwnTokenReader(gateway, part.upstream)
  return async (request, signal) => {
    const { raw, trail } = request
    const { headers: sent, url: target = '' } = raw
    const live = request.live && (await ensureCredential(request.live, trail))
    const caller = { ...forwardedForOf(request), session: live?.session }
    const call: Parameters<typeof upstream.fetchWhole>[0] = {
      method: 'GET',
      path: toUpstream(target),
      headers: toHeaders(sent, caller, false, true),
      timeoutMs: upstream.config.responseTimeout,
      maxBytes,
      tooLarge: 'shape.too-large',
      signal,
      recorded: { trail, purpose: 'part', part: name }
    }
    const ask = (token: Record<string, string> = {}) =>
      upstream.fetchWhole({ ...call, headers: { ...call.headers, ...token } })
    const first = await ask()
    const response = live && readOwnToken ? await readOwnToken(live, trail, first, ask) : first
    const { status, headers, body } = response
    if (status >= 400) throw responseError(response, upstream.config.errors)
    if (status >= 300) throw new GatewayError('upstream.redirect')
    if (hasNoContent(response)) return part.default ?? null
    if (status === 206) throw invalid('a partial response (206), which was not requested')
    const shaped = await shape(readJson(body, headers, maxBytes), request.live, { target })
    return shaped ?? part.default ?? null
  }
}

/**
 * Adds the parts to the route's own response, shapes the whole and lists the missing parts.
 * @throws GatewayError `upstream.invalid` where a required part has no place
 */
export type Merge = (response: Json, shape: (whole: Json) => Json) => Promise<Json>

/**
 * Asks for all parts.
 * @param signal ends it
 * @throws GatewayError as soon as a required part fails; the cause names the part
 */
export async function fetchParts(
  request: FastifyRequest,
  { parts, into }: Parts,
  signal: AbortSignal
): Promise<Merge> {
  const results = await Promise.all(parts.map(part => fetchPart(request, part, signal)))
  return async (response, shape) => {
    const whole: JsonRecord = {}
    if (!place(whole, into, response ?? null)) {
      throw invalid('the response is not an object to which parts can be added')
    }
    const missing: string[] = []
    for (const { part, value, error } of results) {
      const { name, written } = part
      const hasPlace = place(whole, part.into, value)
      if (hasPlace && error === undefined) continue
      const fault =
        error ?? invalid(`the part "${name}" has no place: what would hold it is not an object`)
      if (written.required) throw fault
      if (!signal.aborted) noteMissing(request, name, fault)
      missing.push(name)
    }
    const shaped = await shape(whole)
    return missing.length > 0 && isRecord(shaped) ? { ...shaped, missing } : shaped
  }
}

interface PartResult {
  readonly part: Part
  readonly value: Json
  /** Why it is missing, where it is not required. */
  readonly error?: GatewayError
}

async function fetchPart(
  request: FastifyRequest,
  part: Part,
  signal: AbortSignal
): Promise<PartResult> {
  const { name, written } = part
  try {
    return { part, value: await part.fetch(request, signal) }
  } catch (thrown) {
    const error = toGatewayError(thrown)
    // A part whose call finds the session over ends the whole request.
    const isOptional = !written.required && !error.code.startsWith('session.')
    if (isOptional) return { part, value: written.default, error }
    const cause = new Error(`the part "${name}"`, { cause: error.cause })
    throw new GatewayError(error.code, { ...error.detail, cause })
  }
}

/** For the log and the metrics: a part that is not required has failed. */
function noteMissing(
  { trail, server }: FastifyRequest,
  part: string,
  { code, cause }: GatewayError
): void {
  server.gateway.counters.onMissingPart(trail.route, part)
  trail.missing = [...(trail.missing ?? []), part]
  const why = cause === undefined ? '' : ` (${reasonOf(cause)})`
  trail.reason = `part ${part}: ${code}${why}`
}

/**
 * Sets a value, if there is one, at a path; objects along the path are copied or created. Without a
 * path the members of the value are set.
 * @returns false where a value along the path, or one whose members are to be set, is no object
 */
function place(target: JsonRecord, path: readonly string[], value: Json): boolean {
  const last = path.at(-1)
  if (value === undefined || (value === null && last === undefined)) return true
  if (last === undefined) {
    if (!isRecord(value)) return false
    for (const name of Object.keys(value)) put(target, name, value[name])
    return true
  }
  let holder = target
  for (const name of path.slice(0, -1)) {
    const next = Object.hasOwn(holder, name) ? holder[name] : undefined
    if (next !== undefined && next !== null && !isRecord(next)) return false
    const copy = { ...next }
    put(holder, name, copy)
    holder = copy
  }
  put(holder, last, value)
  return true
}
