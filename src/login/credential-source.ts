/** Credential sources: take a user name and password, give an identity. */
import type { Trail } from '../observability/trail.ts'
import type { Sessions } from '../session/sessions.ts'
import { type Credential, type Identity, type Session, signedInOf } from '../session/types.ts'

export interface SignInAttempt {
  readonly username: string
  readonly password: string
  /** Further members of the console's sign-in body. */
  readonly extra: Readonly<Record<string, unknown>>
  readonly address: string
  readonly requestId: string
  /** Of the request to sign in. */
  readonly trail?: Trail
  /** Sources pass parts of it on, by the names of their config. */
  readonly request?: ConsoleRequest
}

/** The console's request to sign in, beside its body. */
export interface ConsoleRequest {
  readonly headers: Readonly<Record<string, unknown>>
  /** `NAME=VALUE` as the upstream may get it, empty without such a cookie. */
  readonly cookie: (upstream: string, name: string) => string
}

/** A refusal that tells more than a wrong password. */
export type RefusalKind = 'challenge' | 'blocked' | 'expired-password'

export interface Refusal {
  readonly vouched: false
  /** The source knows the user name: no further source is asked. */
  readonly isFinal?: boolean
  /** The source has no such user name, which others may find out: no password was evaluated. */
  readonly isUnknown?: boolean
  /** Without it the password is wrong, or the user unknown. */
  readonly kind?: RefusalKind
  /** The back-end's message for the user, as plain text. */
  readonly message?: string
}

export type SignInResult =
  | Refusal
  | {
      readonly vouched: true
      readonly identity: Identity
      readonly credential?: Credential
      /** A digest of that in a users file, whose later change ends the session. */
      readonly password?: string
    }

/** What a source gives for the credential of a session. */
export interface Renewed {
  readonly credential: Credential
  /** The user as the source knows it now, such as with other roles. Without it: as before. */
  readonly identity?: Identity
}

export interface CredentialSource {
  /** Kept in the session, so that its sign-out finds its source. */
  readonly name: string
  /**
   * Missing where the source takes no passwords. Takes the same time for a wrong password and an
   * unknown user.
   * @throws GatewayError when the source is unavailable; that is never a refusal
   */
  verify?(attempt: SignInAttempt): Promise<SignInResult>
  /**
   * A new credential for a session's old one, or undefined where the source refuses.
   * @throws GatewayError when it cannot tell
   */
  renew?(session: Session, trail?: Trail): Promise<Renewed | undefined>
  /** Ends the session at its source too. May fail: the gateway's session has ended already. */
  signOut?(session: Session, trail?: Trail): Promise<void>
}

/** A source that takes user names and passwords. */
export type PasswordSource = CredentialSource & Required<Pick<CredentialSource, 'verify'>>

export function takesPasswords(source: CredentialSource): source is PasswordSource {
  return source.verify !== undefined
}

/** The request that ends a session. */
interface SigningOut {
  readonly log: { warn: (fields: object, message: string) => void }
  readonly trail?: Trail
}

interface SignOutOptions {
  readonly sources: readonly CredentialSource[]
  readonly sessions: Pick<Sessions, 'list'>
}

/**
 * Ends the session at its source, unless another live session of the user has the same credential.
 * @throws where the source does not end it
 */
export async function endAtSource(
  { sources, sessions }: SignOutOptions,
  session: Session,
  trail?: Trail
): Promise<void> {
  const source = sources.find(({ name }) => name === session.source)
  if (source?.signOut === undefined) return
  // Where the store cannot tell: without the sign-out, nobody may ever end the back-end's session.
  const others = await sessions.list(signedInOf(session)).catch(() => [])
  const isShared = others.some(
    other => other.session.id !== session.id && haveSameSecret(other.session, session)
  )
  if (!isShared) await source.signOut(session, trail)
}

/**
 * Some back-ends give an account one token for all its sign-ins, and end what the token stands for,
 * whatever the cookies beside it.
 */
function haveSameSecret({ credential: a = {} }: Session, { credential: b = {} }: Session): boolean {
  if (a.token !== undefined || b.token !== undefined) return a.token === b.token
  return a.cookies !== undefined && a.cookies === b.cookies
}

/**
 * Ends sessions of a user at their source too, one after the other, and once where they share a
 * credential. Not awaited: the gateway's sessions have ended, even if this fails.
 */
export function signOutAtSource(
  options: SignOutOptions,
  ended: Session | readonly Session[],
  signingOut: SigningOut
): void {
  void signOutInTurn(options, [ended].flat(), signingOut)
}

async function signOutInTurn(
  options: SignOutOptions,
  sessions: readonly Session[],
  { log, trail }: SigningOut
): Promise<void> {
  for (const [index, session] of sessions.entries()) {
    if (sessions.slice(0, index).some(each => haveSameSecret(each, session))) continue
    await endAtSource(options, session, trail).catch((error: Error) => {
      const { id, source } = session
      const fields = { event: 'logout.source', source, session: id, reason: error.message }
      log.warn(fields, 'the back-end refused the sign-out')
    })
  }
}
