/** The answers that `init` got, and its findings: the input of the written config. */
import type { TokenStyle } from './client.ts'
import type { BackendEnvelope } from './envelope.ts'
import type { SeenRoute } from './routes.ts'
import type { SignIn } from './sign-in.ts'
import type { UserCall } from './transport.ts'

export interface ConsoleChoice {
  /** A folder of built files, as an absolute path. */
  readonly root?: string
  /** A preset for `extends`. */
  readonly preset?: string
}

/** The sign-in of the back-end. */
export interface BackendSignIn {
  readonly signIn: SignIn
  readonly style: TokenStyle
  readonly userCall?: UserCall
  readonly logout?: { readonly path: string; readonly method: 'POST' | 'GET' | 'DELETE' }
}

/** The first user of a users file. */
export interface FileUser {
  readonly username: string
  readonly hash: string
  readonly role: string
}

export interface Findings {
  readonly url: string
  /** Headers that the back-end always wants. */
  readonly headers: Readonly<Record<string, string>>
  readonly console: ConsoleChoice
  /** A preset for `backend`. */
  readonly backendPreset?: string
  /** Whether that preset describes the sign-in too. */
  readonly isPresetSource: boolean
  readonly signIn?: BackendSignIn
  readonly fileUser?: FileUser
  readonly envelope?: BackendEnvelope
  readonly routes: readonly SeenRoute[]
}
