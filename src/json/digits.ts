/** JSON numbers of more digits than JavaScript holds (ids beyond 2^53, sums of many places): they are kept as they were written. */
import { type Json, rawNumber } from './values.ts'

type Reviver = (name: string, value: Json, context: { readonly source?: string }) => Json
const parse = JSON.parse as (text: string, reviver?: Reviver) => Json

const keepDigits: Reviver = (_name, value, { source }) =>
  typeof value === 'number' && source !== undefined && losesDigits(source)
    ? rawNumber(source)
    : value

/** Costs five times as much as without the reviver, so only texts with such numbers pay. */
export const parseKeepingDigits = (text: string): Json =>
  hasLongNumber(text) ? parse(text, keepDigits) : parse(text)

/** So many digits JavaScript always holds. */
const safeDigits = 15
/** Beyond 1e308 there is no number, and before 1e-308 soon only 0. */
const mayOverflow = /\d[eE][+-]?\d{3}/g
const wholeNumber = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y

/** May take a text within a string for a number: then parsing is slower, and nothing else. */
export function hasLongNumber(text: string): boolean {
  // One of 16 digits in a row stands at a place that 16 divides, and the other 15 of 16 places need no look.
  for (let at = safeDigits; at < text.length; at += safeDigits + 1) {
    if (!isDigit(text, at)) continue
    const [start, end] = runAround(text, at)
    if (end - start > safeDigits && isLossyAt(text, start)) return true
    // Linear: without this a long run is walked again from each of its places.
    at = end
  }
  mayOverflow.lastIndex = 0
  for (let found = mayOverflow.exec(text); found !== null; found = mayOverflow.exec(text)) {
    if (isLossyAt(text, runAround(text, found.index)[0])) return true
  }
  return false
}

function runAround(text: string, at: number): [start: number, end: number] {
  let start = at
  let end = at + 1
  while (start > 0 && isDigit(text, start - 1)) start--
  while (end < text.length && isDigit(text, end)) end++
  return [start, end]
}

/** A digit or the point between digits. */
function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at)
  return (code >= 48 && code <= 57) || code === 46
}

/** Whether a number begins there that would lose digits. Behind a quotation mark or a letter none begins. */
function isLossyAt(text: string, start: number): boolean {
  const before = text[start - 1] === '-' ? start - 2 : start - 1
  if (before >= 0 && !':,[ \n\r\t'.includes(text[before] as string)) return false
  wholeNumber.lastIndex = start
  const [source] = wholeNumber.exec(text) ?? []
  return source !== undefined && losesDigits(source)
}

export function losesDigits(source: string): boolean {
  const value = Number(source)
  if (String(value) === source) return false
  if (!Number.isFinite(value)) return true
  const digits = significant(source)
  if (value === 0) return digits !== ''
  return (
    digits.length > safeDigits &&
    (digits.length > 100 || significant(value.toPrecision(digits.length)) !== digits)
  )
}

/** The digits without what stands for the size only: sign, point, exponent, zeros at both ends. */
function significant(source: string): string {
  const exponent = source.search(/[eE]/)
  const digits = (exponent === -1 ? source : source.slice(0, exponent)).replaceAll(/[-.]/g, '')
  let start = 0
  let end = digits.length
  while (digits[start] === '0') start++
  // Not /0+$/, which is quadratic in a number of many zeros.
  while (end > start && digits[end - 1] === '0') end--
  return digits.slice(start, end)
}
