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

type Scalar = string | number | boolean

/** Never holds passwords, cookies, tokens, queries, headers or bodies. Long texts are cut. */
export interface AuditEntry {
  readonly kind: EntryKind
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
  readonly outcome?: 'done' | 'failed' | 'refused' | undefined
  /** Named facts of the act, such as how many sessions it closed. */
  readonly detail?: Readonly<Record<string, Scalar | undefined>> | undefined
}
