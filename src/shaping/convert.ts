/** Conversions of single values. A value that cannot be converted without loss stays as it is. */
import { losesDigits } from '../json/digits.ts'
import { isRawNumber, type Json, textOf } from '../json/values.ts'

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
  const ms = time - day * dayMs
  const minutes = Math.floor(ms / 60_000)
  const clock = `${two(Math.floor(minutes / 60))}:${two(minutes % 60)}:`
  const fraction = ms % 1000 === 0 ? '000' : String(ms % 1000).padStart(3, '0')
  return `${date}${clock}${two(Math.floor(ms / 1000) % 60)}.${fraction}Z`
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

export function conversion(kind: string): Conversion {
  const [name = '', zone = 'Z'] = kind.split('@')
  const compile = conversions[name]
  if (compile === undefined) throw new Error(`there is no conversion "${kind}"`)
  return compile(zone)
}

/** Maps values by their text; `*` stands for every other value. */
export function mapping(values: Readonly<Record<string, Json>>): Conversion {
  const byText = new Map(Object.entries(values))
  const hasOther = byText.has('*')
  const other = byText.get('*')
  return value => {
    const text = textOf(value)
    if (text !== undefined && byText.has(text)) return byText.get(text)
    return hasOther ? other : value
  }
}
