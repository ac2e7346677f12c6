/** The session's data, and its form in the store. */
import { hash } from 'node:crypto'
import type { Duration } from '../config/schema/primitives.ts'
import { parseKeepingDigits } from '../json/digits.ts'

export interface Identity {
  readonly id: string
  readonly username: string
  /** For people. */
  readonly name: string
  readonly roles: readonly string[]
  /** Further data of the credential source; fills the profile. */
  readonly profile: Readonly<Record<string, unknown>>
}

/**
 * A back-end's credential. Leaves the gateway only towards upstreams that are configured to get it.
 */
export interface Credential {
  readonly token?: string
  readonly refreshToken?: string
  /** The end of the token, in milliseconds since the epoch. */
  readonly expiresAt?: number
  /** A `Cookie` field's value. */
  readonly cookies?: string
}

/** Digests of a user's state in a users file: a different digest shows a change. */
export interface FileState {
  readonly password: string
  readonly state: string
}

export interface Session {
  /** Public: names the session in logs and lists; opens nothing. */
  readonly id: string
  readonly identity: Identity
  /** The credential source that vouched. */
  readonly source: string
  readonly credential?: Credential
  /** The user's state in the users file; missing for other sources. */
  readonly file?: FileState
  readonly remembered: boolean
  /** Milliseconds since the epoch, as all times here. */
  readonly createdAt: number
  readonly absoluteEnd: number
  readonly idleMs: Duration
  /** The address of the sign-in, for lists. */
  readonly address: string
  readonly agent: string
  /**
   * The fence of the last renewal of the credential: later holders of the lock have greater ones.
   */
  readonly fence?: number
}

/** The reason of a session's end. */
export type EndReason = 'unknown' | 'idle' | 'absolute' | 'revoked' | 'replaced' | 'upstream'

const endReasons: ReadonlySet<string> = new Set<EndReason>([
  'unknown',
  'idle',
  'absolute',
  'revoked',
  'replaced',
  'upstream'
])

/** A tombstone's reason; one that nobody knows says that somebody ended it. */
export function endReasonOf(written: string): EndReason {
  return endReasons.has(written) ? (written as EndReason) : 'revoked'
}

/** A user with sessions. */
export interface SignedIn {
  readonly source: string
  readonly id: string
  readonly username: string
}

export interface RecordContent {
  readonly session: Session
  /** The epoch when it was opened. */
  readonly epoch: number
}

export function writeRecord(content: RecordContent): string {
  return JSON.stringify(content)
}

function isFileState(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  const { password, state } = value as Partial<FileState>
  return typeof password === 'string' && typeof state === 'string'
}

/** @returns undefined for a record that is damaged or not ours */
export function parseRecord(record: string): RecordContent | undefined {
  try {
    const { session, epoch } = parseKeepingDigits(record) as RecordContent
    const { id, identity, createdAt, absoluteEnd, idleMs } = session
    const sound =
      [
        id,
        identity.id,
        identity.username,
        identity.name,
        session.source,
        session.address,
        session.agent
      ].every(value => typeof value === 'string') &&
      Array.isArray(identity.roles) &&
      identity.roles.every(role => typeof role === 'string') &&
      [createdAt, absoluteEnd, idleMs, epoch].every(Number.isFinite) &&
      (session.file === undefined || isFileState(session.file))
    return sound ? { session, epoch } : undefined
  } catch {
    return undefined
  }
}

/**
 * The store's key: a hash, so that a reader of the store cannot replay a session (OWASP session
 * cheat sheet).
 */
export function keyOf(secretId: string): string {
  return hash('sha256', secretId, 'hex')
}

/** The session's user, for lists of signed-in users. */
export function signedInOf({ source, identity: { id, username } }: Session): SignedIn {
  return { source, id, username }
}

/**
 * The session's name in logs, lists and command lines: the beginning of its key. (A `-` in front
 * would make it an option.)
 */
export const publicId = (key: string) => key.slice(0, 12)
