/**
 * Reads an upstream's JSON (content coding, charset, numbers without loss of digits) and writes it.
 */
import { isAscii, isUtf8 } from 'node:buffer'
import { GatewayError } from '../errors/errors.ts'
import { decoded } from './coding.ts'
import { parseKeepingDigits } from './digits.ts'
import type { Json } from './values.ts'

type Headers = Readonly<Record<string, string | string[] | undefined>>

/**
 * @param maxBytes of the decoded text
 * @param onIgnored told which label of a body was ignored, since it is wrong
 * @throws GatewayError `shape.not-json`, whose cause gives position and kind of the fault, but
 * nothing of the body; `shape.too-large`
 */
export function readJson(
  bytes: Buffer,
  headers: Headers,
  maxBytes: number,
  onIgnored: (label: string) => void = () => {}
): Json {
  let ignored: string | undefined
  const ignore = (label: string) => {
    ignored = label
  }
  const plain = decoded(bytes, headers['content-encoding'], maxBytes, ignore)
  if (plain.length > maxBytes) throw new GatewayError('shape.too-large')
  const text = textOfBody(plain, headers['content-type'], ignore)
  let value: Json
  try {
    value = parseKeepingDigits(text)
  } catch (error) {
    const fault = ignored ?? faultOf(text, error as Error)
    throw notJson(`${fault}${typeNote(headers['content-type'])}`)
  }
  if (ignored !== undefined) onIgnored(ignored)
  return value
}

/** @throws GatewayError `shape.not-json` for a value nested too deeply */
export function writeJson(value: Json): string {
  try {
    return JSON.stringify(value)
  } catch {
    throw notJson('it is nested too deeply')
  }
}

/** The position and the kind, and of what stands there one character at most. */
function faultOf(text: string, { name, message }: Error): string {
  const start = text.trimStart()
  if (start === '') return 'it is empty'
  if (start.startsWith('<')) return 'it begins as HTML or XML does'
  if (name === 'RangeError') return 'it is nested too deeply'
  if (message.startsWith('Unexpected end')) return 'it breaks off'
  // V8 quotes the text behind the kind.
  const kind = message.replace(/,? (?:\.\.\.)?".*$/s, '')
  const place = message.startsWith('Unexpected token') ? placeOfToken(text) : ''
  return `${kind.charAt(0).toLowerCase()}${kind.slice(1)}${place}`
}

/** Characters up to which the place of a token is looked for: some 10 ms. */
const longestSearched = 100_000

/** V8 does not tell the place of this fault: the shortest beginning that has it ends there. */
function placeOfToken(text: string): string {
  if (text.length > longestSearched) return ''
  let position = 0
  for (let end = text.length - 1; position < end;) {
    const middle = (position + end) >> 1
    if (hasUnexpectedToken(text.slice(0, middle + 1))) end = middle
    else position = middle + 1
  }
  const lines = text.slice(0, position).split('\n')
  const column = (lines.at(-1)?.length ?? 0) + 1
  return ` at position ${position} (line ${lines.length} column ${column})`
}

function hasUnexpectedToken(text: string): boolean {
  try {
    JSON.parse(text)
    return false
  } catch (error) {
    return (error as Error).message.startsWith('Unexpected token')
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** A byte order mark wins over the header's charset. */
function charsetOf(bytes: Buffer, contentType: string | string[] | undefined): string {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) return 'utf-8'
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le'
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be'
  if (contentType === undefined) return 'utf-8'
  const [, named] = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(String(contentType)) ?? []
  return named?.toLowerCase() ?? 'utf-8'
}

/**
 * JSON is UTF-8 (RFC 8259 §8.1), so text that is well-formed UTF-8 beats a label that says
 * otherwise, and so does any text a label that no decoder knows.
 */
function textOfBody(
  bytes: Buffer,
  contentType: string | string[] | undefined,
  onIgnored: (label: string) => void
): string {
  const charset = charsetOf(bytes, contentType)
  const isPlain = charset === 'utf-8' || charset === 'utf8'
  const isPlainAscii = isAscii(bytes)
  if (isPlain && isPlainAscii) return bytes.toString('latin1')
  const decoder = isPlain ? utf8 : decoderOf(charset)
  const isOtherwise = !isPlain && !isPlainAscii && !charset.startsWith('utf-16') && isUtf8(bytes)
  if (decoder === undefined || isOtherwise) {
    onIgnored(`its charset ${JSON.stringify(charset.slice(0, 40))} is not that of its bytes`)
  }
  try {
    return (decoder === undefined || isOtherwise ? utf8 : decoder).decode(bytes)
  } catch {
    throw notJson(`its text is not ${charset.slice(0, 40)}`)
  }
}

/** @returns undefined for a charset that is not known */
function decoderOf(charset: string): InstanceType<typeof TextDecoder> | undefined {
  try {
    return new TextDecoder(charset, { fatal: true })
  } catch {
    return undefined
  }
}

/** Added where the type is not JSON: the log then shows that an upstream sent its sign-in page. */
function typeNote(contentType: string | string[] | undefined): string {
  const type = /^[\w.+-]+\/[\w.+-]+/.exec(String(contentType ?? ''))?.[0]
  return type === undefined || /json$/i.test(type) ? '' : `, and its type is ${type.slice(0, 60)}`
}

function notJson(reason: string) {
  return new GatewayError('shape.not-json', {
    cause: new Error(`the response is not valid JSON: ${reason}`)
  })
}
