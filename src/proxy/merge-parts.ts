/** Reads the parts of a response, merges them into it and shapes the whole. */
import { GatewayError, toGatewayError } from '../errors/errors.ts'
import { readJson } from '../json/body.ts'
import type { ShapeUse } from '../shaping/operation.ts'
import { isRecord, type Json, type JsonRecord, put, valueAt } from '../json/values.ts'

export interface PartRules {
  readonly name: string
  readonly maxBytes: number
  /** Throws a GatewayError where the body reports a failure. A promise where it has own code. */
  readonly shape: (body: Json, use: ShapeUse) => Json
  readonly unwrap: readonly string[]
  /** The path of its value; empty: the members of its value are added to the response. */
  readonly into: readonly string[]
  readonly isRequired: boolean
  /** Used where the part is missing or null. */
  readonly fallback: Json
}

export interface MergeRules {
  /** The path of the route's own response; empty: the parts are added to that response. */
  readonly into: readonly string[]
  /** The member that lists missing parts. */
  readonly missing: string
}

/** The JSON of an upstream, unread. */
export interface JsonSource {
  readonly bytes: Buffer
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

export interface PartResult {
  readonly part: PartRules
  readonly value: Json
  readonly isMissing: boolean
}

/** Called when a part that is not required has failed. */
type OnMissing = (part: PartRules, error: GatewayError) => void

/** The parts in the order of the config. */
export interface PartResults {
  readonly results: readonly PartResult[]
  readonly onMissing: OnMissing
}

/** The value of a successful response. @throws GatewayError */
export async function readPart(
  { maxBytes, shape, unwrap, fallback }: PartRules,
  response: JsonSource | 'empty',
  use: ShapeUse
): Promise<Json> {
  if (response === 'empty') return fallback ?? null
  const shaped = await shape(readJson(response.bytes, response.headers, maxBytes), use)
  return valueAt(shaped, unwrap) ?? fallback ?? null
}

/** @throws GatewayError of a required part; the cause names it */
export function failedPart(part: PartRules, thrown: unknown, onMissing: OnMissing): PartResult {
  const error = toGatewayError(thrown)
  if (part.isRequired) {
    throw new GatewayError(error.code, {
      ...error.detail,
      cause: new Error(`the part "${part.name}"`, { cause: error.cause })
    })
  }
  onMissing(part, error)
  return { part, value: part.fallback, isMissing: true }
}

/**
 * Adds the parts to the route's own response, shapes the whole and lists the missing parts.
 * @throws GatewayError
 */
export function shapeMerged(
  response: Json,
  rules: MergeRules,
  parts: PartResults,
  shape: (whole: Json) => Json
): Json {
  const { value, missing } = merge(response, rules, parts)
  const shaped = shape(value)
  return shaped instanceof Promise
    ? shaped.then(done => withMissing(done, rules, missing))
    : withMissing(shaped, rules, missing)
}

/**
 * Merges the parts into one value. The route's own response is copied, never changed.
 * @param response the route's own response
 * @throws GatewayError `upstream.invalid` where a required part has no place
 */
function merge(
  response: Json,
  { into }: MergeRules,
  { results, onMissing }: PartResults
): { readonly value: Json; readonly missing: readonly string[] } {
  const value: JsonRecord = into.length === 0 && isRecord(response) ? { ...response } : {}
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
function withMissing(
  response: Json,
  { missing: name }: MergeRules,
  missing: readonly string[]
): Json {
  if (missing.length === 0 || !isRecord(response)) return response
  return { ...response, [name]: missing }
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
    const copy = isRecord(next) ? { ...next } : {}
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
