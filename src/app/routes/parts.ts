/** The parts of a response: other upstreams, all asked at the same time, and merged into it. */
import type { FastifyRequest } from 'fastify'
import type { PartConfig } from '../../config/schema/proxied.ts'
import { pathsOf } from '../../config/schema/resolved.ts'
import type { RouteConfig } from '../../config/schema/routes.ts'
import type { Live } from '../../session/types.ts'
import type { Exchange } from '../../shaping/module.ts'
import { withAt } from '../../shaping/shape.ts'
import { GatewayError, reasonOf, toGatewayError } from '../../errors/errors.ts'
import { readJson } from '../../json/body.ts'
import { isRecord, type Json, type JsonRecord } from '../../json/values.ts'
import { createRewrite } from '../../proxy/path.ts'
import { requestHeaders } from '../../proxy/request-headers.ts'
import type { Call } from '../../proxy/receiver.ts'
import { discard, hasNoContent, invalid, isPart, responseError } from '../../proxy/response.ts'
import { forwardedForOf } from '../hooks/address.ts'
import type { Compiling } from './credentials.ts'

/**
 * @throws GatewayError where the body reports an error @returns a promise where it has own code
 * @param body undefined without content, of which neither code nor contract is asked
 */
export type ShapeBody = (body: unknown, live: Live | undefined, exchange: Exchange) => unknown

type Composed = Pick<RouteConfig, 'path'> & Partial<RouteConfig>
type Parts = NonNullable<ReturnType<typeof compileParts>>
type Part = Parts['parts'][number]

/** @param route or the profile @param shapeOf what a shape makes of a response */
export function compileParts(
  gateway: Compiling,
  route: Composed,
  shapeOf: (name: string | undefined) => ShapeBody
) {
  const parts = Object.entries(route.parts ?? {}).map(([name, written]) => ({
    name,
    written,
    into: written.into?.split('.') ?? [],
    fetch: compileFetch(gateway, route, [name, written], shapeOf(written.shape))
  }))
  /** The path of the route's own response; empty: the parts are added to that response. */
  const into = route.into?.split('.') ?? []
  return parts.length === 0 ? undefined : { parts, into }
}

/** @returns throws a GatewayError, also for a response that is no whole success */
function compileFetch(
  gateway: Compiling,
  route: Composed,
  [name, part]: [string, PartConfig],
  shape: ShapeBody
) {
  const { tokenNames, sealedCookies, config, mount } = gateway
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
  const paths = pathsOf(config.routes, route.path).map(each => mount + each)
  const { toUpstream } = createRewrite(paths, part.rewrite, upstream.base)
  const maxBytes = config.limits.sizes.shape
  const { responseTimeout: timeoutMs } = upstream.config
  const receiving = { timeoutMs, totalMs: timeoutMs, collectBytes: maxBytes, collectsAll: true }
  const { ensure, readSession } = gateway.credentialsOf(part.upstream)
  return async (request: FastifyRequest, signal: AbortSignal): Promise<Json> => {
    const { raw, trail } = request
    const { headers: sent, url: target = '' } = raw
    const live = request.live && (await ensure(request.live, trail))
    const caller = { ...forwardedForOf(request), session: live?.session }
    const call: Call = {
      ...receiving,
      method: 'GET',
      path: toUpstream(target),
      headers: toHeaders(sent, caller, false, true),
      body: null,
      isOwn: true,
      signal,
      recorded: { trail, purpose: 'part', part: name }
    }
    const first = await upstream.send(call)
    const response = live && readSession ? await readSession(live, call, first) : first
    const { status, headers, body } = response
    if (!Buffer.isBuffer(body)) {
      discard(response)
      throw new GatewayError('shape.too-large')
    }
    if (status >= 400) throw responseError(response, upstream.config.errors)
    if (status >= 300) throw new GatewayError('upstream.redirect')
    if (hasNoContent(response)) return part.default ?? null
    if (isPart(response)) throw invalid('a part of a file (206), which was not requested')
    const shaped = await shape(readJson(body, headers, maxBytes), request.live, { target, headers })
    return shaped ?? part.default ?? null
  }
}

/** Adds parts, shapes the whole, lists missing ones. @throws GatewayError `upstream.invalid` */
export type Merge = (response: Json, shape: (whole: Json) => Json) => Promise<Json>

/** @throws GatewayError as soon as a required part fails; the cause names the part */
export async function fetchParts(
  request: FastifyRequest,
  { parts, into }: Parts,
  signal: AbortSignal
): Promise<Merge> {
  const results = await Promise.all(parts.map(part => fetchPart(request, part, signal)))
  return async (response, shape) => {
    const own = placed({}, into, response ?? null)
    if (own === undefined) {
      throw invalid('the response is not an object to which parts can be added')
    }
    let whole = own
    const missing: string[] = []
    for (const { part, value, error } of results) {
      const { name, written } = part
      const next = placed(whole, part.into, value)
      whole = next ?? whole
      if (next !== undefined && error === undefined) continue
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

/** @returns the value, and why it is missing where it is not required */
async function fetchPart(request: FastifyRequest, part: Part, signal: AbortSignal) {
  const { name, written } = part
  try {
    return { part, value: await part.fetch(request, signal), error: undefined }
  } catch (thrown) {
    const error = toGatewayError(thrown)
    // A part whose call finds the session over ends the whole request.
    const isOptional = !written.required && !error.code.startsWith('session.')
    if (isOptional) return { part, value: written.default, error }
    const cause = new Error(`the part "${name}"`, { cause: error.cause })
    throw new GatewayError(error.code, { ...error.detail, cause })
  }
}

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

/** Without a path the members of the value are added. Undefined where it has no place. */
function placed(whole: JsonRecord, path: readonly string[], value: Json): JsonRecord | undefined {
  if (value === undefined || (value === null && path.length === 0)) return whole
  if (path.length > 0) return withAt(whole, path, value) as JsonRecord | undefined
  return isRecord(value) ? { ...whole, ...value } : undefined
}
