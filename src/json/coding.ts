/** Decodes an upstream's content codings. Bounded: a small response can unpack to gigabytes. */
import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync,
  type ZstdOptions
} from 'node:zlib'
import { GatewayError } from '../errors/errors.ts'

type Decode = (bytes: Buffer, maxOutputLength: number) => Buffer

/** Real servers apply one or two. */
const maxCodings = 3
/** Bounded: each frame costs a decoder, however small it is. */
const maxFrames = 64
/** 8 MiB, the maximum of RFC 9659 §3; a frame may ask for gigabytes. */
const zstdParams = { [constants.ZSTD_d_windowLogMax]: 23 }

const decoders: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ['gzip', (bytes, maxOutputLength) => gunzipSync(bytes, { maxOutputLength })],
  [
    'deflate',
    (bytes, maxOutputLength) =>
      (isZlib(bytes) ? inflateSync : inflateRawSync)(bytes, { maxOutputLength })
  ],
  ['br', (bytes, maxOutputLength) => brotliDecompressSync(bytes, { maxOutputLength })],
  ['zstd', unpackFrames]
])

/** The codings of a `Content-Encoding`, in its order. */
function codingsOf(contentEncoding: string | string[]): string[] {
  return String(contentEncoding)
    .toLowerCase()
    .split(',')
    .map(coding => coding.trim().replace(/^x-(?=gzip$)/, ''))
    .filter(coding => coding !== '' && coding !== 'identity')
}

const shown = (label: string) => JSON.stringify(label.slice(0, 40))

/**
 * Decodes the codings of `Content-Encoding`, last one first: a fraction of parsing the result. A
 * label that is wrong is ignored, as browsers do: a name that no decoder knows, such as `UTF-8`,
 * and one on bytes that it does not fit and that begin as JSON does.
 * @param onIgnored told which label was ignored
 * @throws GatewayError `shape.too-large` where a stage is larger than `maxBytes`, `shape.not-json`
 * where one cannot be decoded
 */
export function decoded(
  bytes: Buffer,
  contentEncoding: string | string[] | undefined,
  maxBytes: number,
  onIgnored: (label: string) => void = () => {}
): Buffer {
  if (contentEncoding === undefined) return bytes
  const codings = codingsOf(contentEncoding)
  if (codings.length > maxCodings) throw unreadable(`it has ${codings.length} content codings`)
  return codings.reduceRight((current, coding) => {
    const decode = decoders.get(coding)
    if (decode === undefined) {
      onIgnored(`its content coding ${shown(coding)} is not known`)
      return current
    }
    try {
      return decode(current, maxBytes)
    } catch (error) {
      if (error instanceof GatewayError) throw error
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ERR_BUFFER_TOO_LARGE') throw new GatewayError('shape.too-large')
      if (current === bytes && beginsAsJson(bytes)) {
        onIgnored(`its content coding ${coding} is not that of its bytes`)
        return bytes
      }
      throw unreadable(
        `its content coding ${coding} ${code === 'Z_BUF_ERROR' ? 'breaks off' : 'is broken'}`
      )
    }
  }, bytes)
}

/** An object or a list, maybe behind a byte order mark. */
function beginsAsJson(bytes: Buffer): boolean {
  const [first, second, third, fourth] = bytes
  const start = first === 0xef && second === 0xbb && third === 0xbf ? fourth : first
  return start === 0x7b || start === 0x5b
}

/**
 * Some servers send raw deflate data, without the zlib format that `deflate` means (RFC 9110
 * §8.4.1.2).
 */
function isZlib(bytes: Buffer) {
  return ((bytes[0] ?? 0) & 0x0f) === 8 && bytes.readUInt16BE(0) % 31 === 0
}

/** Node decodes only the first frame and does not say that others follow. */
function unpackFrames(bytes: Buffer, maxOutputLength: number): Buffer {
  const frames: Buffer[] = []
  let length = 0
  for (let at = 0; at === 0 || at < bytes.length;) {
    if (frames.length === maxFrames) throw unreadable(`it has more than ${maxFrames} frames`)
    const options: ZstdOptions = {
      maxOutputLength: maxOutputLength - length + 1,
      params: zstdParams,
      info: true
    }
    const { buffer, engine } = zstdDecompressSync(bytes.subarray(at), options) as unknown as {
      buffer: Buffer
      engine: { bytesWritten: number }
    }
    frames.push(buffer)
    length += buffer.length
    if (length > maxOutputLength) throw new GatewayError('shape.too-large')
    at += engine.bytesWritten
  }
  return frames.length === 1 && frames[0] !== undefined ? frames[0] : Buffer.concat(frames, length)
}

function unreadable(reason: string) {
  return new GatewayError('shape.not-json', { cause: new Error(reason) })
}
