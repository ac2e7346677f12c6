/** A response that is merged from several upstreams' responses, all requested at the same time. */
import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError, toGatewayError } from '../errors.ts'
import { readJson } from '../json/body.ts'
import type { Trail } from '../observability/trail.ts'
import { responseError } from './failures.ts'
import type { ForwardedFor, requestHeaders } from './headers.ts'
import { copyOf, isRecord, type Json, type JsonRecord, put, valueAt } from '../json/values.ts'
import { queueUserOf } from './queue.ts'
import type { Upstream } from './upstream.ts'

export interface Part {
  readonly name: string
  readonly upstream: Upstream
  /** Public target (path, maybe query) → target at the upstream. */
  readonly toUpstream: (target: string) => string
  readonly toHeaders: ReturnType<typeof requestHeaders>
  /** For the whole response. */
  readonly timeoutMs: number
  readonly maxBytes: number
  /** Throws a GatewayError where the body reports a failure. */
  readonly shape: (body: Json) => Json
  readonly unwrap: readonly string[]
  /** The path of its value; empty: the members of its value are added to the response. */
  readonly into: readonly string[]
  readonly isRequired: boolean
  /** Used where the part is missing or null. */
  readonly fallback: Json
}

/** The parts of a route. */
export interface Parts {
  readonly parts: readonly Part[]
  /** The path of the route's own response; empty: the parts are added to that response. */
  readonly into: readonly string[]
  /** The member that lists missing parts. */
  readonly missing: string
}

interface PartsRequest {
  /** The public target. */
  readonly target: string
  readonly headers: IncomingHttpHeaders
  readonly caller: ForwardedFor
  /** Of the request that the parts are for. */
  readonly trail?: Trail
  /** Aborts all requests. */
  readonly signal: AbortSignal
  /** Called when a part that is not required has failed. */
  readonly onMissing: (part: Part, error: GatewayError) => void
}

export interface GatheredParts {
  /** In the order of the config. */
  readonly results: ReadonlyArray<{
    readonly part: Part
    readonly value: Json
    readonly isMissing: boolean
  }>
  readonly onMissing: PartsRequest['onMissing']
}

/**
 * Requests all parts.
 * @throws GatewayError as soon as a required part fails; the cause names the part
 */
export async function gather({ parts }: Parts, request: PartsRequest): Promise<GatheredParts> {
  const results = await Promise.all(
    parts.map(async part => {
      try {
        return {
          part,
          value: (await fetchPart(part, request)) ?? part.fallback ?? null,
          isMissing: false
        }
      } catch (thrown) {
        const error = toGatewayError(thrown)
        if (part.isRequired) {
          throw new GatewayError(error.code, {
            ...error.detail,
            cause: new Error(`the part "${part.name}"`, { cause: error.cause })
          })
        }
        if (!request.signal.aborted) request.onMissing(part, error)
        return { part, value: part.fallback, isMissing: true }
      }
    })
  )
  return { results, onMissing: request.onMissing }
}

async function fetchPart(
  { name, upstream, toUpstream, toHeaders, timeoutMs, maxBytes, shape, unwrap }: Part,
  { target, headers, caller, signal, trail }: PartsRequest
): Promise<Json> {
  const response = await upstream.fetchWhole({
    method: 'GET',
    path: toUpstream(target),
    headers: toHeaders(headers, caller, false, true),
    user: queueUserOf(caller.session, caller.address),
    timeoutMs,
    totalMs: timeoutMs,
    maxBytes,
    tooLarge: 'shape.too-large',
    signal,
    recorded: trail && { trail, purpose: 'part', part: name }
  })
  if (response.status >= 300) {
    throw response.status < 400
      ? new GatewayError('upstream.redirect')
      : responseError(
          { status: response.status, headers: response.headers, bytes: response.body },
          upstream.config.errors
        )
  }
  if (response.status === 204 || response.status === 205) return null
  if (response.status === 206) {
    throw new GatewayError('upstream.invalid', {
      cause: new Error('a partial response (206), which was not requested')
    })
  }
  return valueAt(await shape(readJson(response.body, response.headers, maxBytes)), unwrap)
}

/**
 * Merges the parts into one value. The route's own response is copied, never changed.
 * @param response the route's own response
 * @throws GatewayError `upstream.invalid` where a required part has no place
 */
export function merge(
  response: Json,
  { into }: Parts,
  { results, onMissing }: GatheredParts
): { readonly value: Json; readonly missing: readonly string[] } {
  const value: JsonRecord = into.length === 0 && isRecord(response) ? copyOf(response) : {}
  if (into.length > 0) place(value, into, response)
  else if (!isRecord(response) && response !== null && response !== undefined) {
    throw noPlace('the response is not an object to which parts can be added')
  }
  const missing: string[] = []
  for (const { part, value: partValue, isMissing } of results) {
    const isPlaced =
      partValue === undefined ||
      (part.into.length > 0
        ? place(value, part.into, partValue)
        : partValue === null || addMembers(value, partValue))
    if (!isPlaced) {
      const error = noPlace(
        part.into.length > 0
          ? `the part "${part.name}" has no place: a value on its path is not an object`
          : `the part "${part.name}" is not an object whose members can be added`
      )
      if (part.isRequired) throw error
      if (!isMissing) onMissing(part, error)
    }
    if (isMissing || !isPlaced) missing.push(part.name)
  }
  return { value, missing }
}

/** The response with the names of missing parts; unchanged where it is not an object. */
export function withMissing(
  response: Json,
  { missing: name }: Parts,
  missing: readonly string[]
): Json {
  if (missing.length === 0 || !isRecord(response)) return response
  const result = copyOf(response)
  put(result, name, missing)
  return result
}

function noPlace(reason: string) {
  return new GatewayError('upstream.invalid', { cause: new Error(reason) })
}

/**
 * Sets a value at a path; objects along the path are copied or created. @returns false where a
 * value along the path is not an object
 */
function place(target: JsonRecord, path: readonly string[], value: Json): boolean {
  let holder = target
  for (const name of path.slice(0, -1)) {
    const next = Object.hasOwn(holder, name) ? holder[name] : undefined
    if (next !== undefined && next !== null && !isRecord(next)) return false
    const copy = isRecord(next) ? copyOf(next) : {}
    put(holder, name, copy)
    holder = copy
  }
  put(holder, path.at(-1) as string, value)
  return true
}

function addMembers(target: JsonRecord, value: Json): boolean {
  if (!isRecord(value)) return false
  for (const name of Object.keys(value)) put(target, name, value[name])
  return true
}
