/** What may vouch for an administrator: password in, identity out. */
import type { Credential, FileState, Identity, Session } from '../session/record.ts'

export interface Attempt {
  readonly username: string
  readonly password: string
  /** Further members of the console's sign-in body. */
  readonly extra: Readonly<Record<string, unknown>>
  readonly address: string
  readonly requestId: string
}

export type Verdict =
  | {
      readonly vouched: true
      readonly identity: Identity
      readonly credential?: Credential
      /** Of a source that goes on saying who its users are. */
      readonly file?: FileState
    }
  | {
      readonly vouched: false
      /** The source knows the user name: no other one is asked. */
      readonly isFinal?: boolean
    }

export interface CredentialSource {
  /** Stands in the session, so that its sign-out finds the way back. */
  readonly name: string
  /**
   * Takes the same time for a wrong password and an unknown user.
   * @throws GatewayError when it cannot tell; that is never a refusal
   */
  verify(attempt: Attempt): Promise<Verdict>
  /** How long before its end a credential is renewed; nothing is without it. */
  readonly renewBeforeMs?: number
  /**
   * A new credential for a session's old one, or undefined where the source refuses.
   * @throws GatewayError when it cannot tell
   */
  renew?(session: Session): Promise<Credential | undefined>
  /** Ends the session at its source too. May fail; ours is over by then. */
  signOut?(session: Session): Promise<void>
}

/**
 * Ends a session where it came from. Nobody waits for it: ours is over, whatever the source says.
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
      'the back-end did not take the sign-out'
    )
  )
}
