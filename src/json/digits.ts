/** Numbers that a double cannot hold (ids beyond 2^53, long sums) keep their text. */
import { type Json, rawNumber } from './values.ts'

type Reviver = (name: string, value: Json, context: { readonly source?: string }) => Json
const parse = JSON.parse as (text: string, reviver?: Reviver) => Json

const longDigits = /[:,[\s]-?\d[\d.]{15}/
const exponent = /[eE][+-]?\d{3}/
const numberWithExponent = /[:,[\s]-?[\d.]+[eE][+-]?\d{3}/
const onlyNumber = /^-?\d/

/** Maybe only within a text: parsing is slower then, but correct. */
function mayLoseDigits(text: string): boolean {
  if (longDigits.test(text) || onlyNumber.test(text)) return true
  return exponent.test(text) && numberWithExponent.test(text)
}

export function parseKeepingDigits(text: string, kept: (digits: string) => Json = rawNumber): Json {
  // Only some texts get the reviver: it makes parsing five times as slow.
  if (!mayLoseDigits(text)) return parse(text)
  return parse(text, (_name, value, { source }) =>
    typeof value === 'number' && source !== undefined && losesDigits(source) ? kept(source) : value
  )
}

/** Fractions of 16 and 17 digits that the same double is read from lose none. */
export function losesDigits(source: string): boolean {
  const value = Number(source)
  if (String(value) === source) return false
  const digits = significant(source)
  // Of 1e-400 and 1e400 nothing is left.
  if (value === 0 || !Number.isFinite(value)) return digits !== ''
  // A double may hold 2^60, and is written as 1152921504606847000: an id would be another one.
  if (/^-?\d+$/.test(source)) return source.length > 15
  if (digits.length <= 15) return false
  if (digits.length > 17) return true
  const held = Number.isInteger(value) ? String(value) : value.toPrecision(digits.length)
  return significant(held) !== digits
}

/** The significant digits: without sign, point, exponent and zeros at both ends. */
function significant(source: string): string {
  const [digits = ''] = source.replaceAll(/[-.]/g, '').split(/e/i)
  // The look-behind tries each run of zeros once: a number may have a million of them.
  return digits.replace(/^0+/, '').replace(/(?<!0)0+$/, '')
}
