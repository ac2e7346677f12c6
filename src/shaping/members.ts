/** Member operations (pick, drop, rename, default, constant, map, convert), joined to one pass. */
import type { ShapeStep } from '../config/schema/shapes.ts'
import { isRecord, type Json, type JsonRecord, put } from '../json/values.ts'
import { conversion, mapping } from './convert.ts'

type Read = (record: JsonRecord) => Json

/** The result of the operations so far: named members, and whether all others pass. */
interface Plan {
  readonly members: ReadonlyMap<string, Read>
  /** Members of the input that do not pass under their own name. */
  readonly hidden: ReadonlySet<string>
  readonly othersPass: boolean
}

const keys = ['pick', 'drop', 'rename', 'default', 'constant', 'map', 'convert'] as const

export const isMemberStep = (step: ShapeStep): boolean => keys.some(key => step[key] !== undefined)

export function compileMembers(steps: readonly ShapeStep[]): (value: Json) => Json {
  const untouched: Plan = { members: new Map(), hidden: new Set(), othersPass: true }
  const { members, hidden, othersPass } = steps.reduce(extend, untouched)
  const named = new Set([...hidden, ...members.keys()])
  const reads = [...members]
  return value => {
    if (!isRecord(value)) return value
    const result: JsonRecord = {}
    if (othersPass) {
      for (const name of Object.keys(value)) if (!named.has(name)) put(result, name, value[name])
    }
    for (const [name, read] of reads) {
      const member = read(value)
      if (member !== undefined) put(result, name, member)
    }
    return result
  }
}

function readOf({ members, hidden, othersPass }: Plan, name: string): Read | undefined {
  return members.get(name) ?? (othersPass && !hidden.has(name) ? own(name) : undefined)
}

function own(name: string): Read {
  return name in Object.prototype
    ? record => (Object.hasOwn(record, name) ? record[name] : undefined)
    : record => record[name]
}

function extend(plan: Plan, step: ShapeStep): Plan {
  if (step.pick !== undefined) return pick(plan, step.pick)
  if (step.drop !== undefined) return drop(plan, step.drop)
  if (step.rename !== undefined) return rename(plan, Object.entries(step.rename))
  if (step.default !== undefined) {
    return change(plan, step.default, (read, or) => record => read?.(record) ?? or)
  }
  if (step.constant !== undefined) return change(plan, step.constant, (_, value) => () => value)
  if (step.map !== undefined) {
    return change(plan, step.map, (read, values) => converted(read, mapping(values)))
  }
  return change(plan, step.convert ?? {}, (read, kind) => converted(read, conversion(kind)))
}

function converted(read: Read | undefined, convert: (value: Json) => Json): Read | undefined {
  return (
    read &&
    (record => {
      const value = read(record)
      return value === undefined ? undefined : convert(value)
    })
  )
}

function pick(plan: Plan, names: readonly string[]): Plan {
  const members = new Map<string, Read>()
  for (const name of names) {
    const read = readOf(plan, name)
    if (read !== undefined) members.set(name, read)
  }
  return { members, hidden: new Set(), othersPass: false }
}

function drop(plan: Plan, names: readonly string[]): Plan {
  return {
    ...plan,
    members: new Map([...plan.members].filter(([name]) => !names.includes(name))),
    hidden: new Set([...plan.hidden, ...names])
  }
}

/** All at once, so that two members can swap names. */
function rename(plan: Plan, pairs: ReadonlyArray<readonly [from: string, to: string]>): Plan {
  const here = drop(
    plan,
    pairs.map(([from]) => from)
  )
  const members = new Map(here.members)
  for (const [from, to] of pairs) {
    const first = readOf(plan, from)
    if (first === undefined) continue
    // Where the old name is absent, a member that already has the new name stays.
    const second = members.get(to) ?? readOf(here, to)
    members.set(to, second === undefined ? first : either(first, second))
  }
  return { ...here, members }
}

/** A null of the first is a value. */
function either(first: Read, second: Read): Read {
  return record => {
    const value = first(record)
    return value === undefined ? second(record) : value
  }
}

function change<T>(
  plan: Plan,
  details: Readonly<Record<string, T>>,
  to: (read: Read | undefined, detail: T) => Read | undefined
): Plan {
  const members = new Map(plan.members)
  for (const [name, detail] of Object.entries(details)) {
    const read = to(readOf(plan, name), detail)
    if (read !== undefined) members.set(name, read)
  }
  return { ...plan, members }
}
