/** The operations on an object's members (pick, drop, rename, default, constant, map, convert), fused at build into one function that makes one pass over the object. */
import type { ShapeStep } from '../config/schema/shapes.ts'
import { conversion, mapping } from './convert.ts'
import { isRecord, type Json, type JsonRecord, put } from '../json/values.ts'

/** What a member of the result is made of. */
type Source =
  | { readonly read: string }
  | { readonly value: Json }
  | { readonly of: Source; readonly or: Json }
  | { readonly of: Source; readonly convert: (value: Json) => Json }
  | { readonly first: Source; readonly second: Source }

/** What the operations so far make of an object: named members, and whether all others pass. */
interface Plan {
  readonly members: ReadonlyMap<string, Source>
  /** Members of the input that are not passed on under their own name. */
  readonly hidden: ReadonlySet<string>
  readonly othersPass: boolean
}

const untouched: Plan = { members: new Map(), hidden: new Set(), othersPass: true }

const memberOperations = [
  'pick',
  'drop',
  'rename',
  'default',
  'constant',
  'map',
  'convert'
] as const

export const isMemberStep = (step: ShapeStep): boolean =>
  memberOperations.some(operation => step[operation] !== undefined)

/** One function for all these steps; a value that is no object passes as it is. */
export function compileMembers(steps: readonly ShapeStep[]): (value: Json) => Json {
  const plan = steps.reduce(extend, untouched)
  const fill = writeFill(plan.members)
  if (!plan.othersPass) return value => (isRecord(value) ? fill(value, {}) : value)
  const named = new Set([...plan.hidden, ...plan.members.keys()])
  return value => {
    if (!isRecord(value)) return value
    const result: JsonRecord = {}
    for (const name of Object.keys(value)) if (!named.has(name)) put(result, name, value[name])
    return fill(value, result)
  }
}

type Fill = (record: JsonRecord, result: JsonRecord) => JsonRecord

/**
 * Written as code, with every name in its place: a loop over names would keep V8 from knowing the objects' layout,
 * and cost a quarter more in all. Names enter the code as JSON texts only, values and functions by number.
 */
function writeFill(members: Plan['members']): Fill {
  const given: unknown[] = []
  const number = (value: unknown) => `given[${given.push(value) - 1}]`
  const written = (source: Source): string => {
    if ('read' in source) {
      return source.read in Object.prototype
        ? `own(record, ${JSON.stringify(source.read)})`
        : `record[${JSON.stringify(source.read)}]`
    }
    if ('value' in source) return number(source.value)
    if ('or' in source) return `(${written(source.of)} ?? ${number(source.or)})`
    if ('convert' in source) return `converted(${written(source.of)}, ${number(source.convert)})`
    return `present(${written(source.first)}, () => ${written(source.second)})`
  }
  const lines = [...members].map(([name, source]) => {
    const target = JSON.stringify(name)
    const store =
      name === '__proto__' ? `put(result, ${target}, value)` : `result[${target}] = value`
    return `value = ${written(source)}; if (value !== undefined) ${store}`
  })
  // eslint-disable-next-line no-new-func, typescript/no-implied-eval
  const make = new Function(
    'given',
    'own',
    'put',
    'converted',
    'present',
    `return function fill (record, result) {\nlet value\n${lines.join('\n')}\nreturn result\n}`
  ) as (...names: unknown[]) => Fill
  return make(given, own, put, converted, present)
}

function own(record: JsonRecord, name: string): Json {
  return Object.hasOwn(record, name) ? record[name] : undefined
}
function converted(value: Json, convert: (value: Json) => Json): Json {
  return value === undefined ? undefined : convert(value)
}
function present(value: Json, otherwise: () => Json): Json {
  return value === undefined ? otherwise() : value
}

const sourceOf = ({ members, hidden, othersPass }: Plan, name: string): Source | undefined =>
  members.get(name) ?? (othersPass && !hidden.has(name) ? { read: name } : undefined)

function extend(plan: Plan, step: ShapeStep): Plan {
  if (step.pick !== undefined) return pick(plan, step.pick)
  if (step.drop !== undefined) return drop(plan, step.drop)
  if (step.rename !== undefined) return rename(plan, Object.entries(step.rename))
  if (step.default !== undefined) {
    return change(plan, step.default, (of, or) => (of === undefined ? { value: or } : { of, or }))
  }
  if (step.constant !== undefined) return change(plan, step.constant, (_, value) => ({ value }))
  if (step.map !== undefined) {
    return change(plan, step.map, (of, values) => of && { of, convert: mapping(values) })
  }
  return change(plan, step.convert ?? {}, (of, kind) => of && { of, convert: conversion(kind) })
}

function pick(plan: Plan, names: readonly string[]): Plan {
  const members = new Map<string, Source>()
  for (const name of names) {
    const source = sourceOf(plan, name)
    if (source !== undefined) members.set(name, source)
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

function rename(plan: Plan, pairs: ReadonlyArray<readonly [from: string, to: string]>): Plan {
  // All at once, so that two members can change places.
  const here = drop(
    plan,
    pairs.map(([from]) => from)
  )
  const members = new Map(here.members)
  for (const [from, to] of pairs) {
    const first = sourceOf(plan, from)
    if (first === undefined) continue
    // Where there is nothing to rename, what already has the new name stays.
    const second = members.get(to) ?? sourceOf(here, to)
    members.set(to, second === undefined ? first : { first, second })
  }
  return { ...here, members }
}

function change<T>(
  plan: Plan,
  given: Readonly<Record<string, T>>,
  to: (source: Source | undefined, detail: T) => Source | undefined
): Plan {
  const members = new Map(plan.members)
  for (const [name, detail] of Object.entries(given)) {
    const source = to(sourceOf(plan, name), detail)
    if (source !== undefined) members.set(name, source)
  }
  return { ...plan, members }
}
