/** Member operations (pick, drop, rename, default, constant, map, convert), joined to one pass. */
import { memberOperations, type ShapeStep } from '../config/schema/shapes.ts'
import { losesDigits } from '../json/digits.ts'
import { isRawNumber, isRecord, type Json, type JsonRecord, put, textOf } from '../json/values.ts'

type Read = (record: JsonRecord) => Json

/** The result of the operations so far: named members, and whether all others pass. */
interface Plan {
  readonly members: ReadonlyMap<string, Read>
  /** Members of the input that do not pass under their own name. */
  readonly hidden: ReadonlySet<string>
  readonly othersPass: boolean
}

export const isMemberStep = (step: ShapeStep): boolean =>
  memberOperations.some(key => step[key] !== undefined)

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
    const either: Read = record => {
      const value = first(record)
      // A null is a value.
      return value === undefined ? second?.(record) : value
    }
    members.set(to, second === undefined ? first : either)
  }
  return { ...here, members }
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

type Conversion = (value: Json) => Json

const numberText = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const yes = new Set(['true', '1', 'yes', 'y', 'on'])
const no = new Set(['false', '0', 'no', 'n', 'off', ''])

function toNumber(value: Json): Json {
  if (typeof value === 'boolean') return value ? 1 : 0
  const number = typeof value === 'string' ? numberOf(value) : undefined
  if (number === undefined) return value
  // An id that a double cannot hold would become another id.
  const isUnsafe = Number.isInteger(number) && !Number.isSafeInteger(number)
  return isUnsafe || losesDigits((value as string).trim()) ? value : number
}

/** Of a decimal number; digits that a double cannot hold are lost. */
function numberOf(text: string): number | undefined {
  return numberText.test(text.trim()) ? Number(text) : undefined
}

function toText(value: Json): Json {
  if (isRawNumber(value)) return value.rawJSON
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : value
}

function toBoolean(value: Json): Json {
  if (typeof value !== 'number' && typeof value !== 'string') return value
  const word = String(value).trim().toLowerCase()
  if (yes.has(word)) return true
  return no.has(word) ? false : value
}

const firstMoment = Date.UTC(-1, 12)
const endOfMoments = Date.UTC(10_000, 0)

const dayMs = 86_400_000
/** Dates, up to their `T`, by days since 1970: the dates of a list are few. */
const knownDays = new Map<number, string>()
const maxDays = 1000
const minutesOfDay = Array.from(
  { length: 1440 },
  (_, minute) => `${two(Math.floor(minute / 60))}:${two(minute % 60)}:`
)
const wholeSeconds = Array.from({ length: 60 }, (_, second) => `${two(second)}.000Z`)

/** Undefined outside of the years 0 to 9999. perf: Date's own output takes five times as long. */
export function isoDate(moment: number): string | undefined {
  if (!(moment >= firstMoment && moment < endOfMoments)) return undefined
  const time = Math.trunc(moment)
  const day = Math.floor(time / dayMs)
  let date = knownDays.get(day)
  if (date === undefined) {
    date = new Date(day * dayMs).toISOString().slice(0, 11)
    if (knownDays.size >= maxDays) knownDays.clear()
    knownDays.set(day, date)
  }
  const ofDay = time - day * dayMs
  const second = Math.floor(ofDay / 1000) % 60
  const fraction = ofDay % 1000
  // perf: of few pieces, since a text of many is joined anew: 8 of 145 µs for a list of 20 KB.
  const seconds =
    fraction === 0 ? wholeSeconds[second] : `${two(second)}.${String(fraction).padStart(3, '0')}Z`
  return date + minutesOfDay[Math.floor(ofDay / 60_000)] + seconds
}

function two(number: number): string {
  return number < 10 ? `0${number}` : String(number)
}

const sinceEpoch =
  (factor: number): Conversion =>
  value => {
    const number = typeof value === 'string' ? numberOf(value) : value
    return typeof number === 'number' ? (isoDate(number * factor) ?? value) : value
  }

const dateText =
  /^(\d{4})[-/](\d{1,2})[-/](\d{1,2})(?:[T ]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?\s*(Z|[+-]\d{2}:?\d{2})?$/
/** The date format of HTTP headers (RFC 9110 §5.6.7), which some back-ends send. */
const httpDate = /^[A-Z][a-z]{2}, \d{1,2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/

const fromText =
  (zone: string): Conversion =>
  value => {
    if (typeof value !== 'string') return value
    const text = value.trim()
    if (httpDate.test(text)) {
      const moment = new Date(text)
      const dayAndTime = text.slice('Sat, '.length).padStart('21 Nov 2026 05:30:00 GMT'.length, '0')
      // Date would read 31 February as a day in March.
      const isSame = moment.toUTCString().endsWith(dayAndTime)
      return isSame ? (isoDate(moment.getTime()) ?? value) : value
    }
    const [
      match,
      year = '',
      month = '',
      day = '',
      hour = '0',
      minute = '00',
      second = '00',
      fraction = '',
      offsetText
    ] = dateText.exec(text) ?? []
    if (match === undefined) return value
    const offset = (offsetText ?? zone).replace(/^([+-]\d{2}):?(\d{2})$/, '$1:$2')
    const date = `${year}-${two(Number(month))}-${two(Number(day))}`
    const thousandths = fraction.slice(0, 3).padEnd(3, '0')
    const local = `${date}T${two(Number(hour))}:${minute}:${second}.${thousandths}`
    const milliseconds = Date.parse(local + offset)
    return isExact(local) ? (isoDate(milliseconds) ?? value) : value
  }

function isExact(local: string): boolean {
  const milliseconds = Date.parse(`${local}Z`)
  return Number.isFinite(milliseconds) && new Date(milliseconds).toISOString() === `${local}Z`
}

/** By the kind as in config, where `date-text@+08:00` has a zone. */
const conversions: Readonly<Record<string, (zone: string) => Conversion>> = {
  'number': () => toNumber,
  'string': () => toText,
  'boolean': () => toBoolean,
  'date-seconds': () => sinceEpoch(1000),
  'date-milliseconds': () => sinceEpoch(1),
  'date-text': fromText
}

function conversion(kind: string): Conversion {
  const [name = '', zone = 'Z'] = kind.split('@')
  const compile = conversions[name]
  if (compile === undefined) throw new Error(`there is no conversion "${kind}"`)
  return compile(zone)
}

/** Maps values by their text; `*` stands for every other value. */
function mapping(values: Readonly<Record<string, Json>>): Conversion {
  const byText = new Map(Object.entries(values))
  return value => {
    const text = textOf(value) ?? '*'
    const key = byText.has(text) ? text : '*'
    return byText.has(key) ? byText.get(key) : value
  }
}
