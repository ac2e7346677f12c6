/** A fact for the audit ledger. */

type EntryKind =
  /** An unsafe request that ended, answered or aborted; `code` says why it was refused. */
  | 'request'
  | 'sign-in'
  | 'sign-in.refused'
  | 'sign-out'
  | 'sessions.revoked'
  | 'config.reload'
  /** An operator's act, with its outcome. */
  | 'act'

/**
 * The members of a line, as docs/audit.md has them. Never holds passwords, cookies, tokens, queries,
 * headers or bodies. Long texts are cut.
 */
export interface AuditEntry {
  readonly kind: EntryKind
  readonly user?: string | undefined
  readonly userId?: string | undefined
  readonly source?: string | undefined
  readonly session?: string | undefined
  /** The operator, or `files`, `signal` or `gateway` for what no person asked for here. */
  readonly operator?: string | undefined
  readonly via?: 'secret' | 'socket' | 'session' | undefined
  readonly address?: string | undefined
  readonly route?: string | undefined
  readonly method?: string | undefined
  readonly path?: string | undefined
  readonly status?: number | undefined
  readonly code?: string | undefined
  readonly requestId?: string | undefined
  /** The address of the upstream that was asked last. */
  readonly upstream?: string | undefined
  readonly ms?: number | undefined
  readonly fields?: Readonly<Record<string, string>> | undefined
  readonly act?: string | undefined
  readonly outcome?: 'done' | 'failed' | 'refused' | undefined
  readonly detail?: Readonly<Record<string, string | number | boolean | undefined>> | undefined
}
