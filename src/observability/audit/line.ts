/**
 * A line of the ledger: JSON whose last member, `mac`, is the HMAC of the line's bytes before it.
 * They hold the `mac` of the line before, so that lines form a chain.
 */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { escapeInJson } from '../unprintable.ts'

export interface AuditKey {
  /** Says in each line which key it needs; tells nothing of the key. */
  readonly id: string
  readonly key: KeyObject
}

/** The state of a chain: the number and `mac` of its last line. */
export interface ChainPosition {
  readonly seq: number
  readonly mac: string
}

const suffixStart = ',"mac":"'
const suffixEnd = '"}'
const macLength = 43
const suffixLength = suffixStart.length + macLength + suffixEnd.length

/** @param secrets newest first */
export function auditKeys(secrets: readonly string[]): AuditKey[] {
  return secrets.map(secret => {
    const key = createSecretKey(secret, 'utf8')
    return { id: hmac(key, 'the id of this key').slice(0, 8), key }
  })
}

export function hmac(key: KeyObject, data: string | Buffer): string {
  return createHmac('sha256', key).update(data).digest('base64url')
}

/** @returns the line without its line break, and its `mac` */
export function formatLine(
  before: ChainPosition,
  { id, key }: AuditKey,
  { at, kind, members }: { at: number; kind: string; members: Readonly<Record<string, unknown>> }
): { readonly text: string; readonly mac: string } {
  const head = {
    seq: before.seq + 1,
    prev: before.mac,
    key: id,
    at: new Date(at).toISOString(),
    kind
  }
  const body = escapeInJson(JSON.stringify({ ...head, ...members })).slice(0, -1)
  const mac = hmac(key, body)
  return { text: body + suffixStart + mac + suffixEnd, mac }
}

/** The members that every line begins with, as the line says: nothing of it is verified. */
export interface ReadLine {
  readonly seq: number
  readonly prev: string
  readonly keyId: string
  readonly at: string
  readonly kind: string
  readonly mac: string
}

const linePattern =
  /^\{"seq":([1-9]\d*),"prev":"([\w-]*)","key":"([\w-]+)","at":"([\w:.-]+)","kind":"([a-z.-]+)"/
const macPattern = /,"mac":"([\w-]{43})"\}$/
const maxHeadBytes = 220

/** @returns undefined for bytes that are no line of a ledger */
export function readLine(bytes: Buffer): ReadLine | undefined {
  const start = linePattern.exec(bytes.toString('latin1', 0, maxHeadBytes))
  const end = macPattern.exec(bytes.toString('latin1', Math.max(0, bytes.length - suffixLength)))
  if (start === null || end === null) return undefined
  const [, seq = '', prev = '', keyId = '', at = '', kind = ''] = start
  return { seq: Number(seq), prev, keyId, at, kind, mac: end[1] as string }
}

/** Reads the JSON of a line; the one reader of JSON stands above this part. */
export type ParseLine = (text: string) => unknown

type Authenticity = 'genuine' | 'changed' | 'unknown key'

/** Whether these bytes are a line as it was written with one of the keys. */
export function authenticityOf(
  bytes: Buffer,
  { keyId, mac }: ReadLine,
  keys: readonly AuditKey[]
): Authenticity {
  const key = keys.find(({ id }) => id === keyId)
  if (key === undefined) return 'unknown key'
  const body = bytes.subarray(0, bytes.length - suffixLength)
  return hmac(key.key, body) === mac ? 'genuine' : 'changed'
}
