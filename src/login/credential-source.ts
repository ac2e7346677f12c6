/** Credential sources: take a user name and password, give an identity. */
import type { Credential, FileState, Identity, Session } from '../session/record.ts'

export interface SignInAttempt {
  readonly username: string
  readonly password: string
  /** Further members of the console's sign-in body. */
  readonly extra: Readonly<Record<string, unknown>>
  readonly address: string
  readonly requestId: string
}

export type SignInResult =
  | {
      readonly vouched: true
      readonly identity: Identity
      readonly credential?: Credential
      /** Of a users file, whose later changes end or update the session. */
      readonly file?: FileState
    }
  | {
      readonly vouched: false
      /** The source knows the user name: no further source is asked. */
      readonly isFinal?: boolean
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
   * @throws GatewayError when it cannot tell
   */
  renew?(session: Session): Promise<Credential | undefined>
  /** Ends the session at its source too. May fail: the gateway's session has ended already. */
  signOut?(session: Session): Promise<void>
}

/**
 * Ends a session at its source. Not awaited: the gateway's session has ended, even if this fails.
 */
export function signOutAtSource(
  sources: readonly CredentialSource[],
  session: Session,
  log: { warn: (fields: object, message: string) => void }
): void {
  const source = sources.find(({ name }) => name === session.source)
  source?.signOut?.(session).catch((error: unknown) =>
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
