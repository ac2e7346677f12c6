/**
 * Parses JSON without loss of digits: numbers that a double cannot hold (ids beyond 2^53, long
 * sums) keep their text.
 */
import { type Json, rawNumber } from './values.ts'

type Reviver = (name: string, value: Json, context: { readonly source?: string }) => Json
const parse = JSON.parse as (text: string, reviver?: Reviver) => Json

const keepDigits: Reviver = (_name, value, { source }) =>
  typeof value === 'number' && source !== undefined && losesDigits(source)
    ? rawNumber(source)
    : value

/** A double holds every number of so many digits. */
const safeDigits = 15
const wholeText = /^-?\d+$/
/** May be found in a text, too: parsing is slower then, but correct. */
const longNumber = /(?:^|[:,[\s])-?(?:\d[\d.]{15}|[\d.]+[eE][+-]?\d{3})/

/**
 * Whether a double would be written with other digits. Fractions of 16 and 17 digits that the same
 * double is read from lose none: some programs write all doubles so.
 */
export function losesDigits(source: string): boolean {
  const value = Number(source)
  if (String(value) === source) return false
  if (!Number.isFinite(value)) return true
  const digits = significant(source)
  if (value === 0) return digits !== ''
  // A double may hold 2^60, and is written as 1152921504606847000: an id would be another one.
  if (wholeText.test(source)) return source.length > safeDigits
  if (digits.length <= safeDigits) return false
  if (digits.length > 100) return true
  const held = Number.isInteger(value) ? String(value) : value.toPrecision(digits.length)
  return significant(held) !== digits
}

/** The significant digits: without sign, point, exponent and zeros at both ends. */
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

/** Only texts with such numbers get the reviver: it makes parsing five times as slow. */
export function parseKeepingDigits(text: string): Json {
  return longNumber.test(text) ? parse(text, keepDigits) : parse(text)
}
