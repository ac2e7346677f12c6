export type Json = unknown
export type JsonRecord = Record<string, Json>

/** A raw number is one that a double cannot hold, kept as its text: as JSON writes it. */
export const { isRawJSON: isRawNumber, rawJSON: rawNumber } = JSON as unknown as {
  readonly isRawJSON: (value: Json) => value is { readonly rawJSON: string }
  readonly rawJSON: (digits: string) => Json
}

/** An object with members. Not a raw number (`JSON.rawJSON`), which is an object to JavaScript. */
export const isRecord = (value: Json): value is JsonRecord =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !isRawNumber(value)

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

/** The names and indexes of a pointer. @param decode in a reference such as `#/$defs/NAME` */
export function stepsOf(pointer: string, decode = (step: string) => step): string[] {
  const [, ...steps] = pointer.split('/')
  return steps.map(step => decode(step).replaceAll('~1', '/').replaceAll('~0', '~'))
}
