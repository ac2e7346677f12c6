/**
 * Finds position and kind of a JSON syntax error. V8's messages quote the text, which the log must
 * not hold.
 */

/** The tokens that are allowed next. */
type Expected = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | ', or end' | 'end'

const blanks = /[ \t\n\r]*/y
const scalar = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y
const stringStop = /["\\\x00-\x1f]/g
const escape = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y

/** `it breaks off at position 812 (line 1, column 813)`; undefined for a text that is JSON. */
export function jsonFault(text: string): string | undefined {
  const open: Array<'{' | '['> = []
  let expected = 'value' as Expected
  let at = skip(blanks, text, 0)
  if (at === text.length) return 'it is empty'
  if (text[at] === '<') return 'it begins as HTML or XML does'
  const faultAt = (kind: string, position: number) =>
    `${position >= text.length ? 'it breaks off' : kind} at ${placeOf(text, Math.min(position, text.length))}`
  const afterValue = (): Expected => (open.length === 0 ? 'end' : ', or end')

  for (; ; at = skip(blanks, text, at)) {
    const mark = text[at]
    if (expected === 'end') {
      return mark === undefined ? undefined : faultAt('there is more after its end', at)
    }
    if (expected === ':') {
      if (mark !== ':') return faultAt('an unexpected character', at)
      expected = 'value'
      at++
    } else if (expected === ', or end') {
      const closes = mark === (open.at(-1) === '{' ? '}' : ']')
      if (!closes && mark !== ',') return faultAt('an unexpected character', at)
      if (closes) open.pop()
      const afterComma = open.at(-1) === '{' ? 'name' : 'value'
      expected = closes ? afterValue() : afterComma
      at++
    } else if (
      (expected === 'value or ]' && mark === ']') ||
      (expected === 'name or }' && mark === '}')
    ) {
      open.pop()
      expected = afterValue()
      at++
    } else if (mark === '"') {
      const end = stringEnd(text, at + 1)
      if (typeof end !== 'number') return faultAt(end.kind, end.at)
      expected = expected === 'name' || expected === 'name or }' ? ':' : afterValue()
      at = end
    } else if (expected === 'name' || expected === 'name or }') {
      return faultAt('an unexpected character', at)
    } else if (mark === '{' || mark === '[') {
      open.push(mark)
      expected = mark === '{' ? 'name or }' : 'value or ]'
      at++
    } else {
      const end = skip(scalar, text, at)
      if (end === at) {
        return faultAt(
          'an unexpected character',
          'truefalsenull-'.includes(text.slice(at)) ? text.length : at
        )
      }
      expected = afterValue()
      at = end
    }
  }
}

/** The index after the closing quotation mark, or the fault. */
function stringEnd(
  text: string,
  start: number
): number | { readonly kind: string; readonly at: number } {
  let at = start
  for (;;) {
    stringStop.lastIndex = at
    const stop = stringStop.exec(text)
    if (stop === null) return { kind: '', at: text.length }
    if (stop[0] === '"') return stop.index + 1
    if (stop[0] !== '\\') return { kind: 'a control character in a text', at: stop.index }
    at = skip(escape, text, stop.index)
    if (at === stop.index) {
      return {
        kind: 'an invalid escape',
        at:
          /^\\(?:u[0-9a-fA-F]{0,3})?$/.test(text.slice(at, at + 6)) && at + 6 > text.length
            ? text.length
            : at
      }
    }
  }
}

function skip(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}

function placeOf(text: string, position: number): string {
  const before = text.slice(0, position)
  const lineStart = before.lastIndexOf('\n') + 1
  return `position ${position} (line ${before.split('\n').length}, column ${position - lineStart + 1})`
}
