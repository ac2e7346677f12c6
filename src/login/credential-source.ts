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
  readonly query: Readonly<Record<string, unknown>>
  /** `NAME=VALUE` as the upstream may get it, empty without such a cookie. */
  readonly cookie: (upstream: string, name: string) => string
}

/** A refusal that tells more than a wrong password. */
export type RefusalKind = 'challenge' | 'blocked' | 'expired-password'

export interface Refusal {
  readonly vouched: false
  /** The source knows the user name: no further source is asked. */
  readonly isFinal?: boolean
  /**
   * The source has no such user name, and others may find that out: no password was evaluated.
   */
  readonly isUnknown?: boolean
  /** Without it the password is wrong, or the user unknown. */
  readonly kind?: RefusalKind
  /** The back-end's message for the user, as plain text. */
  readonly message?: string
  /** Of a challenge: how many within an hour are no failure of the account. */
  readonly maxChallenges?: number
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

export interface CredentialSource {
  /** Kept in the session, so that its sign-out finds its source. */
  readonly name: string
  /**
   * Takes the same time for a wrong password and an unknown user.
   * @throws GatewayError when the source is unavailable; that is never a refusal
   */
  verify(attempt: SignInAttempt): Promise<SignInResult>
  /**
   * Milliseconds before its expiry at which a credential is renewed; without it none is renewed.
   */
  readonly renewBeforeMs?: number
  /**
   * A new credential for a session's old one, or undefined where the source refuses.
   * @param trail of the request that needs it
   * @throws GatewayError when it cannot tell
   */
  renew?(session: Session, trail?: Trail): Promise<Credential | undefined>
  /**
   * Ends the session at its source too. May fail: the gateway's session has ended already.
   * @param trail of the request that ends it
   */
  signOut?(session: Session, trail?: Trail): Promise<void>
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
  source: Pick<CredentialSource, 'signOut'>,
  sessions: SignOutOptions['sessions'],
  session: Session,
  trail?: Trail
): Promise<void> {
  if (source.signOut === undefined) return
  // Where the store cannot tell: without the sign-out, nobody may ever end the back-end's session.
  const others = await sessions.list(signedInOf(session)).catch(() => [])
  const isShared = others.some(
    ({ session: { id, credential } }) =>
      id !== session.id && hasSameSecret(credential, session.credential)
  )
  if (!isShared) await source.signOut(session, trail)
}

/**
 * Some back-ends give an account one token for all its sign-ins, and end what the token stands for,
 * whatever the cookies beside it.
 */
function hasSameSecret(a: Credential = {}, b: Credential = {}): boolean {
  if (a.token !== undefined || b.token !== undefined) return a.token === b.token
  return a.cookies !== undefined && a.cookies === b.cookies
}

/** The same, not awaited: the gateway's session has ended, even if this fails. */
export function signOutAtSource(
  options: SignOutOptions,
  session: Session,
  signingOut: SigningOut
): void {
  void signOut(options, session, signingOut)
}

const maxAtOnce = 20

/** Ends sessions of a user at their sources too, once where they share a credential. */
export function signOutAtSources(
  options: SignOutOptions,
  ended: readonly Session[],
  signingOut: SigningOut
): void {
  const rest = ended
    .filter(({ source, credential }, index) => {
      const same = (each: Session) =>
        each.source === source && hasSameSecret(each.credential, credential)
      return !ended.slice(0, index).some(same)
    })
    .values()
  const signOutSome = async () => {
    for (const session of rest) await signOut(options, session, signingOut)
  }
  for (let count = 0; count < maxAtOnce; count++) void signOutSome()
}

async function signOut(
  { sources, sessions }: SignOutOptions,
  session: Session,
  { log, trail }: SigningOut
): Promise<void> {
  const source = sources.find(({ name }) => name === session.source)
  if (source === undefined) return
  await endAtSource(source, sessions, session, trail).catch((error: unknown) =>
    log.warn(
      {
        event: 'logout.source',
        source: source.name,
        session: session.id,
        reason: error instanceof Error ? error.message : String(error)
      },
      'the back-end refused the sign-out'
    )
  )
}
