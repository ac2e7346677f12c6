/** A session: what it is, and how it is written down. */
import { hash } from 'node:crypto'
import type { Duration } from '../config/schema/primitives.ts'
import { parseKeepingDigits } from '../json/digits.ts'

export interface Identity {
  readonly id: string
  readonly username: string
  /** For people. */
  readonly name: string
  readonly roles: readonly string[]
  /** What else the credential source knows; feeds the profile. */
  readonly profile: Readonly<Record<string, unknown>>
}

/**
 * What a back-end gave at its own sign-in. Never leaves the gateway but to upstreams that ask for
 * it.
 */
export interface Credential {
  readonly token?: string
  readonly refreshToken?: string
  /** When the token ends, in milliseconds since the epoch. */
  readonly expiresAt?: number
  /** A `Cookie` field's value. */
  readonly cookies?: string
}

/** Digests of what a users file says of a user: another one shows that something changed. */
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
  /**
   * What the users file says of the user; missing for other sources, and where it was never read.
   */
  readonly file?: FileState
  readonly remembered: boolean
  /** Milliseconds since the epoch, as all times here. */
  readonly createdAt: number
  readonly absoluteEnd: number
  readonly idleMs: Duration
  /** Where the sign-in came from, for lists. */
  readonly address: string
  readonly agent: string
  /**
   * The newest format that the version which opened the session knew, whatever format it wrote;
   * missing in sessions of versions that had no such number. It outlives every rewriting.
   */
  readonly recordVersion?: number
  /** Of the holder of the lock that renewed the credential last; a later holder has more. */
  readonly fence?: number
}

/** Why a session is no longer one. */
export type EndReason = 'unknown' | 'idle' | 'absolute' | 'revoked' | 'replaced' | 'upstream'

const endReasons: ReadonlySet<string> = new Set<EndReason>([
  'unknown',
  'idle',
  'absolute',
  'revoked',
  'replaced',
  'upstream'
])

/** A tombstone's reason; one that only a newer version knows still says that somebody ended it. */
export function endReasonOf(written: string): EndReason {
  return endReasons.has(written) ? (written as EndReason) : 'revoked'
}

/** Somebody who has sessions. */
export interface SignedIn {
  readonly source: string
  readonly id: string
  readonly username: string
}

export interface RecordContent {
  readonly session: Session
  /** How often everyone's sessions had been ended when it was opened. */
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

/** A record that is not ours, or was damaged, is no session. */
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
      (session.recordVersion === undefined || Number.isInteger(session.recordVersion)) &&
      (session.file === undefined || isFileState(session.file))
    return sound ? { session, epoch } : undefined
  } catch {
    return undefined
  }
}

/**
 * The store's key: a hash, so that whoever reads the store cannot replay a session (OWASP session
 * cheat sheet).
 */
export function keyOf(secretId: string): string {
  return hash('sha256', secretId, 'hex')
}

/** Who has the session, for lists of all who are signed in. */
export function signedInOf({ source, identity: { id, username } }: Session): SignedIn {
  return { source, id, username }
}

/**
 * What names a session in logs, in lists and on command lines (where a `-` in front would make it
 * an option): the beginning of its key.
 */
export const publicId = (key: string) => key.slice(0, 12)
