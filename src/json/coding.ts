/** Undoes an upstream's content coding. Bounded: a small response can unpack to gigabytes. */
import {
  brotliDecompressSync,
  constants,
  gunzipSync,
  inflateRawSync,
  inflateSync,
  zstdDecompressSync
} from 'node:zlib'
import { GatewayError } from '../errors/errors.ts'

type Decode = (bytes: Buffer, limit: { readonly maxOutputLength: number }) => Buffer

/** 8 MiB, the maximum of RFC 9659 §3; a frame may ask for gigabytes. */
const zstdParams = { [constants.ZSTD_d_windowLogMax]: 23 }

/** Some servers send raw deflate data, without the zlib format that is meant (RFC 9110 §8.4.1.2). */
const isZlib = (bytes: Buffer): boolean =>
  ((bytes[0] ?? 0) & 0x0f) === 8 && bytes.readUInt16BE(0) % 31 === 0

const decoders: ReadonlyMap<string, Decode> = new Map<string, Decode>([
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
