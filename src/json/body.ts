/** Reads an upstream's JSON (coding, charset, all digits) and writes it. */
import { isAscii, isUtf8 } from 'node:buffer'
import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync
} from 'node:zlib'
import { GatewayError } from '../errors/errors.ts'
import { parseKeepingDigits } from './digits.ts'
import type { Json } from './values.ts'

type Headers = Readonly<Record<string, string | string[] | undefined>>

/**
 * @param maxBytes of the decoded text @param onIgnored told which labels were wrong, and ignored
 * @throws GatewayError `shape.not-json`, which quotes nothing; `shape.too-large`
 */
export function readJson(
  bytes: Buffer,
  headers: Headers,
  maxBytes: number,
  onIgnored: (label: string) => void = () => {}
): Json {
  const type = String(headers['content-type'] ?? '')
  const ignored: string[] = []
  const ignore = (label: string) => ignored.push(label)
  const plain = decoded(bytes, headers['content-encoding'], maxBytes, ignore)
  if (plain.length > maxBytes) throw new GatewayError('shape.too-large')
  let text = ''
  let value: Json
  try {
    text = textOfBody(plain, charsetOf(plain, type), ignore)
    value = parseKeepingDigits(text)
  } catch (error) {
    throw notJson(`${ignored[0] ?? faultOf(text, error as Error)}${typeNote(type)}`)
  }
  for (const label of ignored) onIgnored(label)
  return value
}

/** Undefined for a body that is no JSON, or too large. */
export function tryJson(bytes: Buffer, headers: Headers, maxBytes: number): Json {
  try {
    return readJson(bytes, headers, maxBytes)
  } catch {
    return undefined
  }
}

/** @throws GatewayError `shape.not-json` for a value nested too deeply */
export function writeJson(value: Json, replacer?: (name: string, member: Json) => Json): string {
  try {
    return JSON.stringify(value, replacer)
  } catch {
    throw notJson('it is nested too deeply')
  }
}

/** Of the text one character at most. */
function faultOf(text: string, { name, message }: Error): string {
  const start = text.trimStart()
  if (start.startsWith('<')) return 'it begins as HTML or XML does'
  if (name === 'RangeError') return 'it is nested too deeply'
  if (message.startsWith('Unexpected end')) return start === '' ? 'it is empty' : 'it breaks off'
  // V8 quotes the text behind the kind.
  const kind = message.replace(/,? (?:\.\.\.)?".*$/s, '')
  return kind.charAt(0).toLowerCase() + kind.slice(1)
}

/** A byte order mark wins over the header's charset. */
function charsetOf([first, second]: Buffer, contentType: string): string {
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  if (first === 0xfe && second === 0xff) return 'utf-16be'
  const [, named = 'utf-8'] = /;\s*charset\s*=\s*"?([^\s";]+)/i.exec(contentType) ?? []
  return named.toLowerCase().slice(0, 40)
}

const utf8 = new TextDecoder()

/** JSON is UTF-8 (RFC 8259 §8.1): such text beats a label. ISO-2022 and UTF-16 may be that by chance. */
function textOfBody(bytes: Buffer, charset: string, onIgnored: (label: string) => void): string {
  const mayBeOther =
    charset.startsWith('iso-2022') || (charset.startsWith('utf-16') && bytes.includes(0))
  if (isUtf8(bytes) && !mayBeOther) {
    if (isAscii(bytes)) return bytes.toString('latin1')
    const isRight = /^utf-?8$/.test(charset)
    if (!isRight) onIgnored(`its charset ${JSON.stringify(charset)} is not that of its bytes`)
    return utf8.decode(bytes)
  }
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes)
  } catch {
    throw new Error(`its text is not ${charset}`)
  }
}

/** Added where the type is not JSON: the log then shows that an upstream sent its sign-in page. */
function typeNote(contentType: string): string {
  const type = /^[\w.+-]+\/[\w.+-]+/.exec(contentType)?.[0]
  return type === undefined || /json$/i.test(type) ? '' : `, and its type is ${type.slice(0, 60)}`
}

function notJson(reason: string) {
  return new GatewayError('shape.not-json', {
    cause: new Error(`the response is not valid JSON: ${reason}`)
  })
}

type Decode = (bytes: Buffer, limit: { readonly maxOutputLength: number }) => Buffer

/** 8 MiB, the maximum of RFC 9659 §3; a frame may ask for gigabytes. */
const zstdParams = { [constants.ZSTD_d_windowLogMax]: 23 }

/** Some servers send raw deflate data, without the zlib format that is meant (RFC 9110 §8.4.1.2). */
const isZlib = (bytes: Buffer): boolean =>
  ((bytes[0] ?? 0) & 0x0f) === 8 && bytes.readUInt16BE(0) % 31 === 0

const decoders = new Map<string, Decode>([
  ['', bytes => bytes],
  ['identity', bytes => bytes],
  ['gzip', gunzipSync],
  ['x-gzip', gunzipSync],
  ['deflate', (bytes, limit) => (isZlib(bytes) ? inflateSync : inflateRawSync)(bytes, limit)],
  ['br', brotliDecompressSync],
  ['zstd', (bytes, limit) => zstdDecompressSync(bytes, { ...limit, params: zstdParams })]
])

/** A label that is wrong is ignored, as browsers do. @throws GatewayError `shape.too-large` */
export function decoded(
  bytes: Buffer,
  contentEncoding: string | string[] | undefined,
  maxBytes: number,
  onIgnored: (label: string) => void = () => {}
): Buffer {
  const coding = String(contentEncoding ?? '').toLowerCase()
  const decode = decoders.get(coding)
  try {
    if (decode !== undefined) return decode(bytes, { maxOutputLength: maxBytes })
    onIgnored(`its content coding ${JSON.stringify(coding.slice(0, 40))} is not known`)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ERR_BUFFER_TOO_LARGE') throw new GatewayError('shape.too-large')
    const fault = code === 'Z_BUF_ERROR' ? 'breaks off' : 'is not that of its bytes'
    onIgnored(`its content coding ${coding} ${fault}`)
  }
  return bytes
}
