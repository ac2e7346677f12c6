/** The operations on an object's members (pick, drop, rename, default, constant, map, convert), fused at build into one pass over the object. */
import type { ShapeStep } from '../config/shapes.ts'
import { conversion, mapping } from './convert.ts'
import { isRecord, type Json, type JsonRecord, put, reader } from './json.ts'

/** Reads what a member of the result is made of; undefined where it is absent. */
type Source = (record: JsonRecord) => Json

/** What the operations so far make of an object: named members, and whether all others pass. */
interface Plan {
  readonly members: ReadonlyMap<string, Source>
  /** Members of the input that are not passed on under their own name. */
  readonly hidden: ReadonlySet<string>
  readonly othersPass: boolean
}

const untouched: Plan = { members: new Map(), hidden: new Set(), othersPass: true }

const memberOperations = ['pick', 'drop', 'rename', 'default', 'constant', 'map', 'convert'] as const

export const isMemberStep = (step: ShapeStep): boolean => memberOperations.some(operation => step[operation] !== undefined)

/** One function for all these steps; a value that is no object passes as it is. */
export function compileMembers (steps: readonly ShapeStep[]): (value: Json) => Json {
  const plan = steps.reduce(extend, untouched)
  const names = [...plan.members.keys()]
  const sources = [...plan.members.values()]
  const count = names.length
  const fill = (result: JsonRecord, record: JsonRecord) => {
    for (let index = 0; index < count; index++) {
      const value = (sources[index] as Source)(record)
      if (value !== undefined) put(result, names[index] as string, value)
    }
    return result
  }
  if (!plan.othersPass) return value => isRecord(value) ? fill({}, value) : value
  const named = new Set([...plan.hidden, ...names])
  return value => {
    if (!isRecord(value)) return value
    const result: JsonRecord = {}
    for (const name of Object.keys(value)) if (!named.has(name)) put(result, name, value[name])
    return fill(result, value)
  }
}

const sourceOf = ({ members, hidden, othersPass }: Plan, name: string): Source | undefined => members.get(name) ?? (othersPass && !hidden.has(name) ? reader(name) : undefined)

function extend (plan: Plan, step: ShapeStep): Plan {
  if (step.pick !== undefined) return pick(plan, step.pick)
  if (step.drop !== undefined) return drop(plan, step.drop)
  if (step.rename !== undefined) return rename(plan, Object.entries(step.rename))
  if (step.default !== undefined) return change(plan, step.default, (source, fallback) => source === undefined ? () => fallback : record => source(record) ?? fallback)
  if (step.constant !== undefined) return change(plan, step.constant, (_, value) => () => value)
  if (step.map !== undefined) return change(plan, step.map, (source, values) => source && via(source, mapping(values)))
  return change(plan, step.convert ?? {}, (source, kind) => source && via(source, conversion(kind)))
}

function pick (plan: Plan, names: readonly string[]): Plan {
  const members = new Map<string, Source>()
  for (const name of names) {
    const source = sourceOf(plan, name)
    if (source !== undefined) members.set(name, source)
  }
  return { members, hidden: new Set(), othersPass: false }
}

function drop (plan: Plan, names: readonly string[]): Plan {
  return { ...plan, members: new Map([...plan.members].filter(([name]) => !names.includes(name))), hidden: new Set([...plan.hidden, ...names]) }
}

function rename (plan: Plan, pairs: ReadonlyArray<readonly [from: string, to: string]>): Plan {
  const { members, ...rest } = drop(plan, pairs.map(([from]) => from))
  const renamed = new Map(members)
  // All at once, so that two members can change places.
  const here: Plan = { ...rest, members }
  for (const [from, to] of pairs) {
    const source = sourceOf(plan, from)
    if (source === undefined) continue
    // Where there is nothing to rename, what already has the new name stays.
    const present = renamed.get(to) ?? sourceOf(here, to)
    renamed.set(to, present === undefined ? source : record => { const value = source(record); return value === undefined ? present(record) : value })
  }
  return { ...rest, members: renamed }
}

function change<T> (plan: Plan, given: Readonly<Record<string, T>>, to: (source: Source | undefined, detail: T) => Source | undefined): Plan {
  const members = new Map(plan.members)
  for (const [name, detail] of Object.entries(given)) {
    const source = to(sourceOf(plan, name), detail)
    if (source !== undefined) members.set(name, source)
  }
  return { ...plan, members }
}

function via (source: Source, convert: (value: Json) => Json): Source {
  return record => {
    const value = source(record)
    return value === undefined ? undefined : convert(value)
  }
}
