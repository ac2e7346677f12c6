export type Json = unknown
export type JsonRecord = Record<string, Json>

const { isRawJSON, rawJSON } = JSON as unknown as {
  readonly isRawJSON: (value: Json) => boolean
  readonly rawJSON: (text: string) => Json
}

/** A number that a double cannot hold, kept as its text. */
export const isRawNumber = (value: Json): value is { readonly rawJSON: string } => isRawJSON(value)

/** An object with members. Not a raw number (`JSON.rawJSON`), which is an object to JavaScript. */
export const isRecord = (value: Json): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value)

/** @param digits as JSON writes the number */
export const rawNumber = (digits: string): Json => rawJSON(digits)

/** The value at a path of own members; null where there is none. */
export function valueAt(value: Json, path: readonly string[]): Json {
  let current = value
  for (const key of path) {
    const isHolder = Array.isArray(current) || isRecord(current)
    if (!isHolder || !Object.hasOwn(current as object, key)) return null
    current = (current as JsonRecord)[key]
  }
  return current
}

/** The text of a scalar at a path; undefined for null, a list or an object. */
export function textAt(value: Json, path: string): string | undefined {
  const found = valueAt(value, path.split('.'))
  return found === null || found === undefined ? undefined : textOf(found)
}

/** Assignment that is also correct for `__proto__`, which JSON.parse makes an own member. */
export function put(target: JsonRecord, name: string, value: Json): void {
  if (name === '__proto__') {
    Object.defineProperty(target, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true
    })
  } else target[name] = value
}

/** A scalar as config writes it; undefined for objects and lists. */
export function textOf(value: Json): string | undefined {
  if (isRawNumber(value)) return value.rawJSON
  return typeof value === 'object' && value !== null ? undefined : String(value)
}

/** The names and indexes of a pointer. */
export const stepsOf = (pointer: string): string[] => pointer.split('/').slice(1).map(unescapeStep)

/** Those of a pointer in a reference such as `#/$defs/NAME` (§6). */
export const stepsOfReference = (reference: string): string[] =>
  reference
    .split('/')
    .slice(1)
    .map(step => unescapeStep(decodeURIComponent(step)))

function unescapeStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}
