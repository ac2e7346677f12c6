import { hash, randomBytes } from 'node:crypto'
import { keySource } from '../config/schema/login.ts'
import type { Duration } from '../config/schema/primitives.ts'

export interface Identity {
  readonly id: string
  readonly username: string
  readonly name: string
  readonly roles: readonly string[]
  readonly profile: Readonly<Record<string, unknown>>
}

/** A back-end's credential: leaves the gateway only towards upstreams that config names for it. */
export interface Credential {
  readonly token?: string
  readonly refreshToken?: string
  /** The end of the token, in milliseconds since the epoch. */
  readonly expiresAt?: number
  readonly cookies?: string
  /** Of an OpenID provider, as it signed it: the hint of who signs out there. */
  readonly idToken?: string
}

export interface ProviderSession {
  readonly names: readonly string[]
  /** Of the ID token, in seconds since the epoch by the provider's clock. */
  readonly issuedAt: number
}

export interface KeyTerms {
  readonly createdBy: string
  readonly forMs: Duration
}

export interface Renewed {
  readonly credential: Credential
  /** The user as the source knows it now, such as with other roles. Without it: as before. */
  readonly identity?: Identity
}

export interface NewSession {
  readonly identity: Identity
  readonly source: string
  readonly credential?: Credential
  /** Tokens that upstreams gave for the user after the sign-in, by the name of the upstream. */
  readonly tokens?: Readonly<Record<string, Credential>>
  readonly provider?: ProviderSession
  /** A digest of the password's hash in the users file; missing for other sources. */
  readonly password?: string
  readonly remembered: boolean
  /** Of a key for scripts: a session without a cookie. */
  readonly key?: KeyTerms
  readonly address: string
  readonly agent: string
}

export interface Session extends NewSession {
  /** Public: names the session in logs and lists; opens nothing. */
  readonly id: string
  /** Milliseconds since the epoch, by the clock of the machine that opened it. */
  readonly createdAt: number
  readonly idleMs: Duration
}

/** A live session. Its ends are by the clock of this process. */
export interface Live {
  readonly session: Session
  readonly key: string
  /** As the store has it; empty for the token of a machine, which no store has. */
  readonly sealed: string
  readonly absoluteEnd: number
  /** May lie beyond its absolute end. Use is announced to nobody, so it may be later in truth. */
  idleEnd: number
}

export interface Opened extends Live {
  /** Those that gave way to it, with their credentials: their back-ends have to be told. */
  readonly replaced: readonly Session[]
}

export const keptReasons = ['idle', 'absolute', 'revoked', 'replaced', 'upstream'] as const

export type EndReason = 'unknown' | (typeof keptReasons)[number]

export interface Ended {
  readonly ended: EndReason
}

export type Evaluation = { readonly live: Live } | Ended

export interface SignedIn {
  readonly source: string
  readonly id: string
  readonly username: string
}

/** Keys for scripts are listed apart from users, and end only by themselves. */
export const isKey = ({ source }: Pick<SignedIn, 'source'>) => source === keySource

export type UserId = Pick<SignedIn, 'source' | 'id'>

export function signedInOf({ source, identity }: Pick<Session, 'source' | 'identity'>): SignedIn {
  const { id, username } = identity
  return { source, id, username }
}

export interface End {
  /** `sign-in`: the user may have so many only. Without it the end is recorded elsewhere. */
  readonly by?: 'user' | 'sign-in' | 'upstream' | 'users-file'
  readonly address?: string
  readonly requestId?: string | undefined
}

export interface Revoked extends End {
  readonly user: SignedIn
  readonly reason: EndReason
  readonly sessions: readonly string[]
}

/** Two credential sources may give the same id to two people; names of sources hold no slash. */
export function userKey({ source, id }: UserId): string {
  return `${source}/${id}`
}

export function identityKey({ source, identity }: Pick<Session, 'source' | 'identity'>): string {
  return `${source}/${identity.id}`
}

/** All spellings have one: many a back-end ignores width, case, blanks and invisible characters. */
export function accountKey(typed: string): string {
  return typed
    .normalize('NFKD')
    .replace(/[\p{C}\p{Z}\p{M}]/gu, '')
    .toLowerCase()
    .slice(0, 255)
}

const userLength = 16

/** No secret. Keys of sessions and values of cookies begin with it, to find the user's list. */
export function userDigest(user: UserId): string {
  return hash('sha256', userKey(user), 'base64url').slice(0, userLength)
}

export const digestIn = (key: string) => key.slice(0, userLength)

/** A new value of the cookie: the user's digest and 192 random bits. */
export function createSecretId(user: UserId): string {
  return userDigest(user) + randomBytes(24).toString('base64url')
}

/** A hash: a reader of the store cannot replay a session (OWASP session cheat sheet). */
export function keyOf(secretId: string): string {
  return secretId.slice(0, userLength) + hash('sha256', secretId, 'hex')
}

/** The session's name in logs, lists and commands. Hexadecimal: a `-` would begin an option. */
export const publicId = (key: string) => key.slice(userLength, userLength + 12)
