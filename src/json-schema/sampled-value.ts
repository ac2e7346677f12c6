/** A copy of a response in which long lists and maps are cut, to look for all deviations in it. */
import { isRecord } from './closed-schema.ts'
import { isRawNumber } from './plain-value.ts'

/** Items and members that are left of the outermost long list or map. */
const maxOuter = 100
/** Of those within it; no list or map of so many is ever cut. */
const maxInner = 10

/** Keywords with a number of items or members, or of leading items. */
const counting = new Set(['minItems', 'maxItems', 'minProperties', 'maxProperties'])
/** Keywords that relate items or members to each other. */
const relating = new Set(['contains', 'dependentRequired', 'dependentSchemas'])
/** Keywords that may hold of a whole list only because of one item, which may be cut. */
const reversing = new Set(['not', 'if', 'oneOf'])

const isObject = (value: unknown) => typeof value === 'object' && value !== null

/** A constant whose own items or members would be cut in the value. */
function isLargeConstant(keyword: string, content: unknown): boolean {
  if (keyword === 'const') return isObject(content)
  return keyword === 'enum' && Array.isArray(content) && content.some(isObject)
}

/** Whether a value may deviate from a schema only because something in it was cut. */
export function forbidsCuts(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(forbidsCuts)
  if (!isRecord(schema)) return false
  return Object.entries(schema).some(
    ([keyword, content]) =>
      relating.has(keyword) ||
      isLargeConstant(keyword, content) ||
      (counting.has(keyword) && typeof content === 'number' && content > maxInner) ||
      (keyword === 'prefixItems' && Array.isArray(content) && content.length > maxInner / 2) ||
      forbidsCuts(content)
  )
}

/** Whether deviations of a cut value are a hint only: the whole one may have none. */
export function cutsMayMislead(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(cutsMayMislead)
  if (!isRecord(schema)) return false
  return Object.entries(schema).some(
    ([keyword, content]) => reversing.has(keyword) || cutsMayMislead(content)
  )
}

/**
 * Kept of a list are its first items, which a schema may describe one by one, and others evenly
 * from all of it; of a map its members with names of the schema, and others evenly.
 * @returns the value itself where nothing is cut
 */
export function sampledValue(value: unknown, names: ReadonlySet<string>): unknown {
  let isCut = false
  const some = <T>(entries: readonly T[], max: number): readonly T[] => {
    if (entries.length <= max) return entries
    isCut = true
    return evenly(entries, max)
  }
  const copy = (current: unknown, max: number): unknown => {
    if (typeof current !== 'object' || current === null || isRawNumber(current)) return current
    if (Array.isArray(current)) {
      return some(current, max).map(item => copy(item, shareOf(max, current.length)))
    }
    const [named, others] = partition(Object.entries(current), ([name]) => names.has(name))
    const inner = shareOf(max, others.length)
    const kept = [...named, ...some(others, max)]
    return Object.fromEntries(kept.map(([name, member]) => [name, copy(member, inner)]))
  }
  const copied = copy(value, maxOuter)
  return isCut ? copied : value
}

/** The bound within each of so many items or members. */
function shareOf(max: number, count: number): number {
  return count <= maxInner ? max : Math.max(maxInner, Math.floor(max / count))
}

function partition<T>(values: readonly T[], isFirst: (value: T) => boolean): [T[], T[]] {
  return [values.filter(isFirst), values.filter(value => !isFirst(value))]
}

/** The first ones in a row, then evenly up to the last one. */
function evenly<T>(entries: readonly T[], max: number): T[] {
  const first = Math.floor(max / 2)
  const step = (entries.length - 1 - first) / (max - 1 - first)
  return Array.from({ length: max }, (_, index) =>
    index < first ? index : Math.round(first + (index - first) * step)
  ).flatMap(index => entries.slice(index, index + 1))
}
