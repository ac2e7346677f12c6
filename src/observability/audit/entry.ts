/** The entries of the audit ledger, and the ledger as its callers see it. */

type EntryKind =
  /** An unsafe request that ended, answered or aborted; `code` says why it was refused. */
  | 'request'
  | 'sign-in'
  | 'sign-in.refused'
  | 'sign-out'
  | 'sessions.revoked'
  | 'config.reload'
  | 'maintenance'
  /** An operator's act, with its outcome. */
  | 'act'

type Outcome = 'done' | 'failed' | 'refused'

type Scalar = string | number | boolean

/** A fact for the ledger. Never holds passwords, cookies, tokens, queries, headers or bodies. */
export interface AuditEntry {
  readonly kind: EntryKind
  /** When it happened, in ms since 1970; the time of the call without it. */
  readonly at?: number | undefined
  readonly user?: string | undefined
  readonly userId?: string | undefined
  /** The credential source that vouched for the user. */
  readonly source?: string | undefined
  /** The public id of the session. */
  readonly session?: string | undefined
  /** The operator, or `files`, `signal` or `gateway` for what no person asked for here. */
  readonly operator?: string | undefined
  readonly via?: 'secret' | 'session' | undefined
  /** The client's address. */
  readonly address?: string | undefined
  readonly route?: string | undefined
  readonly method?: string | undefined
  /** Without the query. */
  readonly path?: string | undefined
  /** 499 where the client left before its response was sent. */
  readonly status?: number | undefined
  /** The error code of a refusal. */
  readonly code?: string | undefined
  readonly requestId?: string | undefined
  /** The address of the upstream that was asked last. */
  readonly upstream?: string | undefined
  readonly ms?: number | undefined
  /** Members of the body that `audit.fields` names. */
  readonly fields?: Readonly<Record<string, string>> | undefined
  /** The name of an operator's act, such as `sessions.close`. */
  readonly act?: string | undefined
  readonly outcome?: Outcome | undefined
  /** Named facts of the act, such as how many sessions it closed. */
  readonly detail?: Readonly<Record<string, Scalar | undefined>> | undefined
}

export interface Ledger {
  /** Records a fact soon. Never throws, never waits; what cannot be kept is counted. */
  readonly append: (entry: AuditEntry) => void
  /** @throws LedgerUnavailable while it cannot be written */
  readonly check: () => void
  /**
   * Records a fact.
   * @returns when its line is on disk
   * @throws LedgerUnavailable where that failed; then the line waits
   */
  readonly commit: (entry: AuditEntry) => Promise<void>
}

/** The ledger cannot be written. */
export class LedgerUnavailable extends Error {}

const maxText = 512
const maxMembers = 32

const textMembers = [
  'user',
  'userId',
  'source',
  'session',
  'operator',
  'via',
  'address',
  'route',
  'method',
  'path',
  'code',
  'requestId',
  'upstream',
  'act',
  'outcome'
] as const satisfies Array<keyof AuditEntry>

/** The members of a line after `kind`, in their order, each within its bound. */
export function membersOf(entry: AuditEntry): Record<string, unknown> {
  const members: Record<string, unknown> = {}
  for (const name of textMembers) {
    const value = entry[name]
    if (value !== undefined) members[name] = cut(value)
  }
  if (entry.status !== undefined) members['status'] = entry.status
  if (entry.ms !== undefined) members['ms'] = Math.round(entry.ms * 100) / 100
  if (entry.fields !== undefined) members['fields'] = cutAll(entry.fields)
  if (entry.detail !== undefined) members['detail'] = cutAll(entry.detail)
  return members
}

function cutAll(values: Readonly<Record<string, Scalar | undefined>>): Record<string, Scalar> {
  const bounded: Array<readonly [string, Scalar]> = []
  for (const [name, value] of Object.entries(values)) {
    if (bounded.length === maxMembers) break
    if (value === undefined) continue
    bounded.push([cut(name), typeof value === 'string' ? cut(value) : value])
  }
  return Object.fromEntries(bounded)
}

function cut(text: string): string {
  return text.length <= maxText ? text : `${text.slice(0, maxText)}…`
}
