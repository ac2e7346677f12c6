/**
 * Compiles operations on an object's members (pick, drop, rename, default, constant, map, convert)
 * into one function that passes over the object once.
 */
import type { ShapeStep } from '../config/schema/shapes.ts'
import { conversion, mapping } from './convert.ts'
import { isRecord, type Json, type JsonRecord, put } from '../json/values.ts'

/** The origin of a member of the result. */
type Source =
  | { readonly read: string }
  | { readonly value: Json }
  | { readonly of: Source; readonly or: Json }
  | { readonly of: Source; readonly convert: (value: Json) => Json }
  | { readonly first: Source; readonly second: Source }

/** The result of the operations so far: named members, and whether all others pass. */
interface MemberPlan {
  readonly members: ReadonlyMap<string, Source>
  /** Members of the input that do not pass under their own name. */
  readonly hidden: ReadonlySet<string>
  readonly othersPass: boolean
}

const untouched: MemberPlan = { members: new Map(), hidden: new Set(), othersPass: true }

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

/** One function for all steps; a value that is not an object passes as it is. */
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
 * Generated code with every name in its place: a loop over names would hide the objects' layout
 * from V8 and cost a quarter more. Names enter the code as JSON strings only, values and functions
 * by number.
 * perf: a shaped response of 20 KB −17 % (−9 to −26; bench path /api/shaped/medium, by turns);
 * without it: a closure for each member.
 */
function writeFill(members: MemberPlan['members']): Fill {
  const values: unknown[] = []
  const named = (value: unknown) => `value${values.push(value) - 1}`
  let temporaries = 0
  /** `then` is what becomes of the value of `code`, unless it is undefined. */
  const unlessAbsent = (code: string, then: (name: string) => string, otherwise: string) => {
    const name = `temporary${temporaries++}`
    return `((${name} = ${code}) === undefined ? ${otherwise} : ${then(name)})`
  }
  const written = (source: Source): string => {
    if ('read' in source) {
      return source.read in Object.prototype
        ? `ownMember(record, ${JSON.stringify(source.read)})`
        : `record[${JSON.stringify(source.read)}]`
    }
    if ('value' in source) return named(source.value)
    if ('or' in source) return `(${written(source.of)} ?? ${named(source.or)})`
    if ('convert' in source) {
      const convert = named(source.convert)
      return unlessAbsent(written(source.of), name => `${convert}(${name})`, 'undefined')
    }
    return unlessAbsent(written(source.first), name => name, written(source.second))
  }
  const lines = [...members].map(([name, source]) => {
    const target = JSON.stringify(name)
    const store =
      name === '__proto__' ? `put(result, ${target}, value)` : `result[${target}] = value`
    return `value = ${written(source)}; if (value !== undefined) ${store}`
  })
  const variables = Array.from({ length: temporaries }, (_, index) => `, temporary${index}`)
  // oxlint-disable-next-line typescript/no-implied-eval
  const make = new Function(
    'ownMember',
    'put',
    ...values.keys().map(index => `value${index}`),
    `return function fill (record, result) {
let value${variables.join('')}
${lines.join('\n')}
return result
}`
  ) as (...names: unknown[]) => Fill
  return make(ownMember, put, ...values)
}

function ownMember(record: JsonRecord, name: string): Json {
  return Object.hasOwn(record, name) ? record[name] : undefined
}

const sourceOf = ({ members, hidden, othersPass }: MemberPlan, name: string): Source | undefined =>
  members.get(name) ?? (othersPass && !hidden.has(name) ? { read: name } : undefined)

function extend(plan: MemberPlan, step: ShapeStep): MemberPlan {
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

function pick(plan: MemberPlan, names: readonly string[]): MemberPlan {
  const members = new Map<string, Source>()
  for (const name of names) {
    const source = sourceOf(plan, name)
    if (source !== undefined) members.set(name, source)
  }
  return { members, hidden: new Set(), othersPass: false }
}

function drop(plan: MemberPlan, names: readonly string[]): MemberPlan {
  return {
    ...plan,
    members: new Map([...plan.members].filter(([name]) => !names.includes(name))),
    hidden: new Set([...plan.hidden, ...names])
  }
}

function rename(
  plan: MemberPlan,
  pairs: ReadonlyArray<readonly [from: string, to: string]>
): MemberPlan {
  // All at once, so that two members can swap names.
  const here = drop(
    plan,
    pairs.map(([from]) => from)
  )
  const members = new Map(here.members)
  for (const [from, to] of pairs) {
    const first = sourceOf(plan, from)
    if (first === undefined) continue
    // Where the old name is absent, a member that already has the new name stays.
    const second = members.get(to) ?? sourceOf(here, to)
    members.set(to, second === undefined ? first : { first, second })
  }
  return { ...here, members }
}

function change<T>(
  plan: MemberPlan,
  details: Readonly<Record<string, T>>,
  to: (source: Source | undefined, detail: T) => Source | undefined
): MemberPlan {
  const members = new Map(plan.members)
  for (const [name, detail] of Object.entries(details)) {
    const source = to(sourceOf(plan, name), detail)
    if (source !== undefined) members.set(name, source)
  }
  return { ...plan, members }
}
