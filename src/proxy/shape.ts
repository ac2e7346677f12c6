/** Response shaping: the operations of a shape, compiled into one function when the app is built. */
import type { ShapeStep } from '../config/routes.ts'

type Json = unknown
export type Shape = (body: Json) => Json
type Operation = (value: Json) => Json
/** Puts data under the console's success envelope. */
type Wrap = (data: Json, extra?: Record<string, Json>) => Json

const isRecord = (value: Json): value is Record<string, Json> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** A shape never throws and never changes its input: what an operation does not fit passes as it is. */
export function compileShape (steps: readonly ShapeStep[], wrap: Wrap): Shape {
  return sequence(steps.map(step => compileStep(step, wrap)))
}

function sequence (operations: readonly Operation[]): Operation {
  return value => {
    let current = value
    for (const operation of operations) current = operation(current)
    return current
  }
}

function compileStep (step: ShapeStep, wrap: Wrap): Operation {
  if (step.unwrap !== undefined) return unwrap(step.unwrap.split('.'))
  if (step.pick !== undefined) return pick(step.pick)
  if (step.rename !== undefined) return rename(step.rename)
  if (step.default !== undefined) return defaults(step.default)
  if (step.each !== undefined) {
    const item = sequence(step.each.map(inner => compileStep(inner, wrap)))
    return value => Array.isArray(value) ? value.map(item) : value
  }
  if (step.wrap === 'list') {
    return value => {
      const list = Array.isArray(value) ? value : []
      return wrap(list, { total: list.length })
    }
  }
  return value => wrap(value)
}

/** The value at a path of own members; null where there is none. */
export function valueAt (value: Json, path: readonly string[]): Json {
  let current = value
  for (const key of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, key)) return null
    current = (current as Record<string, Json>)[key]
  }
  return current
}

const unwrap = (path: readonly string[]): Operation => value => valueAt(value, path)

function pick (names: readonly string[]): Operation {
  return value => {
    if (!isRecord(value)) return value
    const result = plain()
    for (const name of names) if (Object.hasOwn(value, name)) put(result, name, value[name])
    return result
  }
}

function rename (names: Readonly<Record<string, string>>): Operation {
  const renamed = new Map(Object.entries(names))
  return value => {
    if (!isRecord(value)) return value
    const result = plain()
    // What already has the new name gives way to what is renamed to it.
    for (const name of Object.keys(value)) if (!renamed.has(name)) put(result, name, value[name])
    for (const [from, to] of renamed) if (Object.hasOwn(value, from)) put(result, to, value[from])
    return result
  }
}

function defaults (values: Readonly<Record<string, Json>>): Operation {
  const entries = Object.entries(values)
  return value => {
    if (!isRecord(value)) return value
    const result = plain()
    for (const name of Object.keys(value)) put(result, name, value[name])
    for (const [name, fallback] of entries) if ((result[name] ?? null) === null || !Object.hasOwn(result, name)) put(result, name, fallback)
    return result
  }
}

const plain = (): Record<string, Json> => ({})

/** Assignment that also holds for `__proto__`, which JSON.parse makes an own member. */
function put (target: Record<string, Json>, name: string, value: Json): void {
  if (name === '__proto__') Object.defineProperty(target, name, { value, enumerable: true, configurable: true, writable: true })
  else target[name] = value
}
