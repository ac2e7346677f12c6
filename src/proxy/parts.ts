/** An answer that is made of several upstreams' answers: all asked at the same time, merged into one value. */
import type { IncomingHttpHeaders } from 'node:http'
import { GatewayError, toGatewayError } from '../errors.ts'
import { readJson } from '../json/body.ts'
import { answeredError } from './failures.ts'
import type { ForwardedFor, requestFields } from './headers.ts'
import { copyOf, isRecord, type Json, type JsonRecord, put, valueAt } from '../json/values.ts'
import type { Upstream } from './upstream.ts'

export interface Part {
  readonly name: string
  readonly upstream: Upstream
  /** Public target (path, maybe query) → target at the upstream. */
  readonly toUpstream: (target: string) => string
  readonly toFields: ReturnType<typeof requestFields>
  /** For the whole answer. */
  readonly timeoutMs: number
  readonly maxBytes: number
  /** May throw a GatewayError: what the back-end says in its body of how it went. */
  readonly shape: (body: Json) => Json
  readonly unwrap: readonly string[]
  /** Empty: the members of its value are added to the answer's. */
  readonly into: readonly string[]
  readonly isRequired: boolean
  /** In the place of what is missing or null. */
  readonly fallback: Json
}

/** What a route is made of. */
export interface Parts {
  readonly parts: readonly Part[]
  /** Where the route's own answer stands; empty for what the parts are added to. */
  readonly into: readonly string[]
  /** The member that names those that are missing. */
  readonly missing: string
}

interface Asking {
  /** The public one. */
  readonly target: string
  readonly headers: IncomingHttpHeaders
  readonly caller: ForwardedFor
  /** Ends all of them. */
  readonly signal: AbortSignal
  /** For the log: a part that is not required has failed. */
  readonly onMissing: (part: Part, error: GatewayError) => void
}

export interface Gathered {
  /** In the order of the config. */
  readonly found: ReadonlyArray<{
    readonly part: Part
    readonly value: Json
    readonly isMissing: boolean
  }>
  readonly onMissing: Asking['onMissing']
}

/**
 * Asks all parts.
 * @throws GatewayError as soon as a required one fails: its error, whose cause names the part
 */
export async function gather({ parts }: Parts, asking: Asking): Promise<Gathered> {
  const found = await Promise.all(
    parts.map(async part => {
      try {
        return { part, value: (await ask(part, asking)) ?? part.fallback ?? null, isMissing: false }
      } catch (thrown) {
        const error = toGatewayError(thrown)
        if (part.isRequired) {
          throw new GatewayError(error.code, {
            ...error.detail,
            cause: new Error(`the part "${part.name}"`, { cause: error.cause })
          })
        }
        if (!asking.signal.aborted) asking.onMissing(part, error)
        return { part, value: part.fallback, isMissing: true }
      }
    })
  )
  return { found, onMissing: asking.onMissing }
}

async function ask(
  { upstream, toUpstream, toFields, timeoutMs, maxBytes, shape, unwrap }: Part,
  { target, headers, caller, signal }: Asking
): Promise<Json> {
  const answer = await upstream.fetchWhole({
    method: 'GET',
    path: toUpstream(target),
    headers: toFields(headers, caller, false, true),
    timeoutMs,
    totalMs: timeoutMs,
    maxBytes,
    tooLarge: 'shape.too-large',
    signal
  })
  if (answer.status >= 300) {
    throw answer.status < 400
      ? new GatewayError('upstream.redirect')
      : answeredError(answer.status, answer.headers, answer.body)
  }
  if (answer.status === 204 || answer.status === 205) return null
  if (answer.status === 206) {
    throw new GatewayError('upstream.invalid', {
      cause: new Error('a part of an answer, which was not asked for')
    })
  }
  return valueAt(await shape(readJson(answer.body, answer.headers, maxBytes)), unwrap)
}

/**
 * One value of all. What the parts are added to is copied, never changed.
 * @param own the route's own answer
 * @throws GatewayError `upstream.invalid` where a required part has no place
 */
export function merge(
  own: Json,
  { into }: Parts,
  { found, onMissing }: Gathered
): { readonly value: Json; readonly missing: readonly string[] } {
  const value: JsonRecord = into.length === 0 && isRecord(own) ? copyOf(own) : {}
  if (into.length > 0) place(value, into, own)
  else if (!isRecord(own) && own !== null && own !== undefined) {
    throw noPlace('the response is not an object to which parts can be added')
  }
  const missing: string[] = []
  for (const { part, value: given, isMissing } of found) {
    const isPlaced =
      given === undefined ||
      (part.into.length > 0
        ? place(value, part.into, given)
        : given === null || addMembers(value, given))
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

/** The answer with the names of what is missing. One that is no object has no place for them. */
export function withMissing(
  answer: Json,
  { missing: name }: Parts,
  missing: readonly string[]
): Json {
  if (missing.length === 0 || !isRecord(answer)) return answer
  const result = copyOf(answer)
  put(result, name, missing)
  return result
}

function noPlace(reason: string) {
  return new GatewayError('upstream.invalid', { cause: new Error(reason) })
}

/** What lies on the way is copied, or made; false where it is no object. */
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
