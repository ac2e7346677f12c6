/** Orders numbers by their exact decimal value, however many digits they have. */

const numberParts = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/
/** Larger exponents count as equal. */
const maxExponent = 4e15
const exponentDigits = 16

/** A string whose alphabetical order is the order of the numbers. */
export function orderKey(written: string): string {
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = numberParts.exec(written) ?? []
  const all = whole + fraction
  let first = 0
  while (all[first] === '0') first++
  if (first === all.length) return 'o'
  let end = all.length
  while (all[end - 1] === '0') end--
  const digits = all.slice(first, end)
  const magnitude = clamp(Number(exponent) + whole.length - first) + maxExponent
  const key = String(magnitude).padStart(exponentDigits, '0') + digits
  // Of two negative numbers the one with the greater magnitude, or with more digits, is the
  // smaller.
  return sign === '' ? `p${key}` : `n${key.replaceAll(/\d/g, digit => String(9 - Number(digit)))}~`
}

function clamp(exponent: number) {
  return Math.max(-maxExponent, Math.min(maxExponent, exponent))
}
