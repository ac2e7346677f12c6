/** The place of a back-end’s credential, and its call for the user, found by GET calls. */
import type { BackendClient, BackendResponse, Credential, TokenStyle } from './client.ts'
import { isSuccess } from './envelope.ts'
import type { SignIn } from './sign-in.ts'
import { type UserPaths, userPathsOf } from './user.ts'

const tokenStyles: readonly TokenStyle[] = [
  'bearer',
  'header:x-access-token',
  'header:x-token',
  'header:authorization',
  'header:token'
]
const maxPaths = 60

export interface Transport {
  readonly credential: Credential
  /** The path that proved it; undefined where the style is only likely. */
  readonly provedBy?: string
}

/** @param paths GET calls that need a credential, the most likely first */
export async function findTransport(
  client: BackendClient,
  { credential, envelope }: SignIn,
  paths: readonly string[]
): Promise<Transport> {
  const styles = stylesOf(credential)
  for (const path of paths.slice(0, maxPaths)) {
    if (!client.mayGuess()) break
    const control = await client.get(path)
    // A public path shows nothing, and one that is not there needs no credential.
    if (isSuccess(control, envelope) || control.status === 404) continue
    for (const style of styles) {
      const response = await client.get(path, { ...credential, style })
      if (isSuccess(response, envelope)) {
        return { credential: { ...credential, style }, provedBy: path }
      }
      // The path is not there: further styles would not find it either.
      if (response.status === 404) break
    }
  }
  return { credential: likelyCredential(credential) }
}

function stylesOf({ token, cookies }: SignIn['credential']): readonly TokenStyle[] {
  return [
    ...(token === undefined ? [] : tokenStyles),
    ...(cookies === undefined ? [] : (['cookies'] as const))
  ]
}

/** The credential in its most common style. */
export function likelyCredential(credential: SignIn['credential']): Credential {
  return { ...credential, style: stylesOf(credential)[0] ?? 'none' }
}

export interface UserCall {
  readonly path: string
  readonly user: UserPaths
  readonly response: BackendResponse
}

/** The first GET call that answers the user who has signed in. A path that was named is alone. */
export async function findUserCall(
  client: BackendClient,
  credential: Credential,
  search: { readonly paths: readonly string[]; readonly username: string; readonly signIn: SignIn }
): Promise<UserCall | undefined> {
  const { paths, username, signIn } = search
  for (const path of paths.slice(0, maxPaths)) {
    if (paths.length > 1 && !client.mayGuess()) break
    const response = await client.get(path, credential)
    if (!isSuccess(response, signIn.envelope)) continue
    const user = userPathsOf(response.body, username)
    if (user !== undefined) return { path, user, response }
  }
  return undefined
}

const userNames = [
  'me',
  'users/me',
  'user/me',
  'user/info',
  'getInfo',
  'user/getUserInfo',
  'auth/me',
  'auth/user',
  'auth/profile',
  'userinfo',
  'user/profile',
  'account/me',
  'accounts/me',
  'account/profile',
  'profile',
  'currentUser',
  'user/current',
  'sys/user/getUserInfo',
  'system/user/profile'
]

/** Common paths of the user's call, near the sign-in first. */
export function likelyUserPaths(signInPath: string): string[] {
  const slash = signInPath.length > 1 && signInPath.endsWith('/') ? '/' : ''
  const segments = signInPath.split('/').filter(segment => segment !== '')
  const folders = segments.map((_, index) =>
    segments
      .slice(0, segments.length - 1 - index)
      .map(segment => `/${segment}`)
      .join('')
  )
  const bases = [...new Set([...folders, '', '/api'])]
  return [
    ...new Set(bases.flatMap(base => userNames.map(name => `${base}/${name}${slash}`)))
  ].slice(0, maxPaths)
}
