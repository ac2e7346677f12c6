/** JSON whose last member is the HMAC of that of the line before and of this line's bytes. */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import { escapeInJson } from '../unprintable.ts'

type Who = 'user' | 'userId' | 'source' | 'session' | 'operator' | 'address'
type What = 'route' | 'method' | 'path' | 'code' | 'requestId' | 'upstream' | 'act'

/** A fact. Never holds passwords, cookies, tokens, queries, headers or bodies. */
export type AuditEntry = { readonly [member in Who | What]?: string | undefined } & {
  readonly kind:
    | 'request'
    | 'sign-in'
    | 'sign-in.refused'
    | 'sign-out'
    | 'sessions.revoked'
    | 'config.reload'
    | 'act'
  readonly via?: 'secret' | 'socket' | 'session' | undefined
  readonly status?: number | undefined
  readonly ms?: number | undefined
  readonly fields?: Readonly<Record<string, string>> | undefined
  readonly outcome?: 'done' | 'failed' | 'refused' | undefined
  readonly detail?: Readonly<Record<string, string | number | boolean | undefined>> | undefined
}

export interface Fact {
  readonly at: string
  /** From `kind` on, without its MAC. */
  readonly json: string
}

const maxText = 512
const maxMembers = 32
const macLength = 43
const suffixLength = withMac('', '').length + macLength

export function factOf(fact: object): Fact {
  const json = escapeInJson(JSON.stringify(fact, bounded).slice(1, -1))
  return { at: new Date().toISOString(), json }
}

function bounded(name: string, value: unknown): unknown {
  if (typeof value === 'string') return cut(value)
  if (typeof value !== 'object' || value === null) return value
  if (name !== 'fields' && name !== 'detail') return value
  const set = Object.entries(value).filter(([, each]) => each !== undefined)
  return Object.fromEntries(set.slice(0, maxMembers).map(([each, member]) => [cut(each), member]))
}

function cut(text: string): string {
  return text.length <= maxText ? text : `${text.slice(0, maxText)}…`
}

export const auditKey = (secret: string): KeyObject => createSecretKey(secret, 'utf8')

export function macOf(key: KeyObject, before: string, body: string | Buffer): string {
  return createHmac('sha256', key).update(before).update(body).digest('base64url')
}

export function withMac(body: string, mac: string): string {
  return `${body},"mac":"${mac}"}`
}

/** @returns undefined for bytes that do not end as a line of the ledger does */
export function split(line: Buffer): { readonly body: Buffer; readonly mac: string } | undefined {
  const end = Math.max(0, line.length - suffixLength)
  const text = line.toString('latin1', end)
  const mac = text.slice(-macLength - 2, -2)
  // The whole end is compared: its last bytes are under no signature.
  return text === withMac('', mac) ? { body: line.subarray(0, end), mac } : undefined
}

/** The files of a ledger in a folder, each of which holds one chain. */
export const fileOf = (chain: string): string => `audit-${chain}.jsonl`
export const chainOf = (file: string): string | undefined => /^audit-(.+)\.jsonl$/.exec(file)?.[1]
