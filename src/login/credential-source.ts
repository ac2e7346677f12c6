import type { Logger } from 'pino'
import { isOfUpstream, reasonOf } from '../errors/errors.ts'
import type { Trail } from '../observability/trail.ts'
import { credentialIn } from '../session/credentials.ts'
import type { Sessions } from '../session/sessions.ts'
import {
  type Credential,
  type Identity,
  type Renewed,
  type Session,
  signedInOf
} from '../session/types.ts'

export interface SignInAttempt {
  readonly username: string
  readonly password: string
  readonly extra: Readonly<Record<string, unknown>>
  readonly address: string
  readonly requestId: string
  readonly trail?: Trail
  readonly request?: ConsoleRequest
}

export interface ConsoleRequest {
  readonly headers: Readonly<Record<string, unknown>>
  /** `NAME=VALUE` as the upstream may get it, empty without such a cookie. */
  readonly cookie: (upstream: string, name: string) => string
}

export type RefusalKind = 'challenge' | 'blocked' | 'expired-password'

export interface Refusal {
  readonly vouched: false
  /** The source knows the user name: no further source is asked. */
  readonly isFinal?: boolean
  /** The source has no such user name, which others may find out: no password was evaluated. */
  readonly isUnknown?: boolean
  readonly kind?: RefusalKind
  readonly message?: string
}

export type SignInResult =
  | Refusal
  | {
      readonly vouched: true
      readonly identity: Identity
      readonly credential?: Credential
      /** Of a users file: a later change ends the session. */
      readonly password?: string
    }

export interface CredentialSource {
  /** Kept in the session, so that its sign-out finds its source. */
  readonly name: string
  /** Of one that gives sessions of any source a token for this upstream alone. */
  readonly upstream?: string
  /** Unknown users take the same time. @throws GatewayError when it is away: no refusal */
  verify?(attempt: SignInAttempt): Promise<SignInResult>
  /** @returns undefined where the source refuses @throws GatewayError when it cannot tell */
  renew?(session: Session, trail?: Trail): Promise<Renewed | undefined>
  /** Ends the session at its source too. May fail: the gateway's session has ended already. */
  signOut?(session: Session, trail?: Trail): Promise<void>
}

export type PasswordSource = CredentialSource & Required<Pick<CredentialSource, 'verify'>>

export function takesPasswords(source: CredentialSource): source is PasswordSource {
  return source.verify !== undefined
}

/** The sources that did not answer this process, for operators. */
export class SourceFaults {
  readonly #bySource = new Map<string, { source: string; since: number; reason: string }>()

  /** Awaits what a source was asked, and remembers whether it could tell. */
  async watch<T>(source: string, asked: Promise<T>): Promise<T> {
    try {
      const result = await asked
      this.#bySource.delete(source)
      return result
    } catch (error) {
      if (isOfUpstream(error)) {
        const { since = Date.now() } = this.#bySource.get(source) ?? {}
        this.#bySource.set(source, { source, since, reason: reasonOf(error.cause ?? error) })
      }
      throw error
    }
  }

  read() {
    return [...this.#bySource.values()]
  }
}

export interface SignOutOptions {
  readonly sources: readonly CredentialSource[]
  readonly exchanges?: ReadonlyMap<string, CredentialSource>
  readonly sessions: Pick<Sessions, 'list'>
}

/** Ends it where it got credentials, unless another of the user's sessions has the same. */
async function endAtSource(
  { sources, exchanges, sessions }: SignOutOptions,
  session: Session,
  trail: Trail | undefined,
  ended: readonly Session[]
): Promise<void> {
  const source = sources.find(({ name }) => name === session.source)
  const givers = Object.keys(session.tokens ?? {}).map(name => exchanges?.get(name))
  const holders = [source, ...givers]
  if (holders.every(each => each?.signOut === undefined)) return
  // Where the store cannot tell: without the sign-out, nobody may ever end the back-end's session.
  const listed = await sessions.list(signedInOf(session)).catch(() => [])
  const others = listed.map(live => live.session).filter(({ id }) => id !== session.id)
  const isShared = (upstream?: string) =>
    [...others, ...ended].some(each =>
      haveSameSecret(credentialIn(each, upstream), credentialIn(session, upstream))
    )
  await Promise.all(
    holders.map(async each => {
      if (!isShared(each?.upstream)) await each?.signOut?.(session, trail)
    })
  )
}

/** Some back-ends give all sign-ins of an account one token, and end what it stands for. */
function haveSameSecret(a: Credential = {}, b: Credential = {}): boolean {
  if (a.token !== undefined || b.token !== undefined) return a.token === b.token
  return a.cookies !== undefined && a.cookies === b.cookies
}

/** Not awaited: the gateway's sessions have ended, even if this fails. */
export function signOutAtSource(
  options: SignOutOptions,
  ended: Session | readonly Session[],
  { log, trail }: { log: Pick<Logger, 'warn'>; trail?: Trail | undefined }
): void {
  const signOutInTurn = async () => {
    const sessions = [ended].flat()
    for (const [index, session] of sessions.entries()) {
      const before = sessions.slice(0, index)
      await endAtSource(options, session, trail, before).catch((error: Error) => {
        const { id, source } = session
        const fields = { event: 'logout.source', source, session: id, reason: error.message }
        log.warn(fields, 'the back-end refused the sign-out')
      })
    }
  }
  void signOutInTurn()
}
