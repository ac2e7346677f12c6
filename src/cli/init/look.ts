/** Looks at a back-end: its sign-in, credential, user, lists and sign-out, in this order. */
import { type BackendClient, type Credential, maxGuessing } from './client.ts'
import { type BackendEnvelope, isSuccess, joinEnvelopes } from './envelope.ts'
import type { BackendSignIn } from './model.ts'
import type { Redaction } from './redaction.ts'
import { lookAtRoutes, type SeenRoutes, type WantedRoute } from './routes.ts'
import { type Account, type SignIn, signIn, type SignInCall } from './sign-in.ts'
import { findTransport, findUserCall, likelyCredential, likelyUserPaths } from './transport.ts'

export interface LookOptions {
  readonly client: BackendClient
  readonly redaction: Redaction
  /** Undefined where a users file vouches for users. */
  readonly account?: { readonly call: SignInCall; readonly credentials: Account }
  readonly wanted: readonly WantedRoute[]
  /** The path of the user's call, if it was named. */
  readonly userPath?: string
  /** The path of the sign-out, if it was named. */
  readonly logoutPath?: string
  /** Whether a preset describes the back-end: what it says needs no note. */
  readonly isPreset: boolean
  readonly report: (line: string) => void
}

export interface Look {
  readonly signIn?: BackendSignIn
  readonly envelope?: BackendEnvelope
  readonly seen: SeenRoutes
  /** Questions that stayed open, each with what to do. */
  readonly notes: readonly string[]
}

const anonymous: Credential = { style: 'none' }

export async function look(options: LookOptions): Promise<Look> {
  const { account, client, wanted } = options
  if (account === undefined) {
    const seen = await lookAtRoutes({ client, credential: anonymous }, wanted)
    return withEnvelope(seen, [...routeNotes(seen, options), ...guessNotes(client)])
  }
  const session = await signIn(options, account.call, account.credentials)
  options.report(`Signed in at ${account.call.path} (status ${session.response.status}).`)
  try {
    return await lookWithin(options, session, account.credentials)
  } catch (error) {
    // The first failure says more than one of the sign-out.
    await signOut(options, session, likelyCredential(session.credential)).catch(() => undefined)
    throw error
  }
}

/** Looks with the back-end's session, and ends it. */
async function lookWithin(
  options: LookOptions,
  session: SignIn,
  credentials: Account
): Promise<Look> {
  const { client, wanted } = options
  const notes: string[] = []
  const atSession = await lookAtSession(options, session, credentials, notes)
  const { credential, ...backendSignIn } = atSession
  const context = {
    client,
    credential,
    ...(session.envelope !== undefined && { envelope: session.envelope })
  }
  const seen = await lookAtRoutes(context, wanted)
  const logout = await signOut(options, session, credential)
  if (logout === undefined) {
    notes.push(
      'The back-end’s sign-out: not found, so its token stays valid when a user signs out. ' +
        'Name it with --logout-path, or set login.sources[].logout.'
    )
  }
  const whole = { ...backendSignIn, ...(logout !== undefined && { logout }) }
  const ofSignIn = options.isPreset ? [] : [...notes, ...sessionNotes(session)]
  const all = [...ofSignIn, ...routeNotes(seen, options), ...guessNotes(client)]
  return { signIn: whole, ...withEnvelope(seen, all, session.envelope) }
}

function withEnvelope(
  seen: SeenRoutes,
  notes: readonly string[],
  atSignIn?: BackendEnvelope
): Omit<Look, 'signIn'> {
  const envelope = joinEnvelopes([atSignIn, ...seen.routes.map(route => route.envelope)])
  return { seen, notes, ...(envelope !== undefined && { envelope }) }
}

/** The style of the credential, and the user. */
async function lookAtSession(
  { client, wanted, userPath, report }: LookOptions,
  session: SignIn,
  { username }: Account,
  notes: string[]
): Promise<BackendSignIn & { readonly credential: Credential }> {
  const userPaths = userPath === undefined ? likelyUserPaths(session.call.path) : [userPath]
  const paths = [...wanted.map(({ path }) => path), ...userPaths]
  const { credential, provedBy } = await findTransport(client, session, paths)
  if (provedBy === undefined) {
    notes.push(
      `How it takes its token: no GET call proved it; "${credential.style}" is a guess. ` +
        'Name a path that needs a session with --route.'
    )
  } else report(`It takes its credential as "${credential.style}" (seen at ${provedBy}).`)
  const isEnough = userPath === undefined && session.user?.roles !== undefined
  const search = { paths: userPaths, username, signIn: session }
  const userCall = isEnough ? undefined : await findUserCall(client, credential, search)
  if (userCall !== undefined) report(`It answers who the user is at ${userCall.path}.`)
  const user = userCall?.user ?? session.user
  if (user === undefined) {
    notes.push(
      'Who the user is: neither the sign-in nor a GET call answered it. Name the call with ' +
        '--user-path; without an id nobody can sign in.'
    )
  } else if (user.roles === undefined) {
    notes.push('Roles: not found in the user’s data (login.sources[].user.roles).')
  }
  const isBetter = userCall !== undefined && (session.user === undefined || isRicher(userCall.user))
  return {
    signIn: session,
    style: credential.style,
    credential,
    ...(isBetter && { userCall })
  }
}

/** A second call at each sign-in is worth it for roles. */
function isRicher({ roles }: { readonly roles?: string }): boolean {
  return roles !== undefined
}

/**
 * Ends the back-end's session. A path that was not named is kept only if the credential is refused
 * afterwards.
 */
async function signOut(
  { client, logoutPath, report, wanted }: LookOptions,
  session: SignIn,
  credential: Credential
): Promise<BackendSignIn['logout']> {
  const paths = [logoutPath ?? likelyLogout(session.call.path)]
  for (const path of paths.filter(each => each !== undefined)) {
    const response = await client.post(path, { format: 'json', members: {} }, credential)
    if (!isSuccess(response, session.envelope) && response.status !== 204) continue
    const [probe] = wanted
    const after =
      logoutPath === undefined && probe !== undefined
        ? await client.get(probe.path, credential)
        : undefined
    if (after !== undefined && isSuccess(after, session.envelope)) continue
    report(`Signed out at ${path}.`)
    return { path, method: 'POST' }
  }
  return undefined
}

function likelyLogout(path: string): string | undefined {
  const pattern = /(log|sign)[-_]?in(?=\/?$)/i
  const match = pattern.exec(path)
  if (match === null) return undefined
  const word = match[0].replace(/in$/, 'out').replace(/In$/, 'Out').replace(/IN$/, 'OUT')
  return path.replace(pattern, word)
}

function sessionNotes({ tests, tokens, credential }: SignIn): string[] {
  const isNothing = credential.token === undefined && credential.cookies === undefined
  return [
    ...(tests.isGuess === true
      ? ['How a refused sign-in differs: not seen. Correct `success` and `refused` by hand.']
      : []),
    ...(isNothing ? ['The credential: the sign-in answered neither a token nor a cookie.'] : []),
    ...(tokens?.expires === undefined
      ? []
      : [
          `The token ends (${tokens.expires.path}, ${tokens.expires.as}). Renewing it was not ` +
            'tried: see `expires` and `refresh` of login.sources.'
        ])
  ]
}

function guessNotes(client: BackendClient): string[] {
  if (client.mayGuess()) return []
  return [`${maxGuessing} requests were sent: further guesses were left out.`]
}

function routeNotes(seen: SeenRoutes, { wanted, isPreset }: LookOptions): string[] {
  const lists = seen.routes.filter(({ list }) => list !== undefined)
  return [
    ...(wanted.length === 0 ? ['What the console calls: name its lists with --route.'] : []),
    ...seen.failures.map(({ path, reason }) => `GET ${path}: left out (${reason}).`),
    ...lists
      .filter(({ list }) => list?.total === undefined)
      .map(({ path }) => `GET ${path}: no total; the console gets the number of rows of the page.`),
    ...(lists.length > 0 && !isPreset
      ? ['The names of paging that console and back-end use: `paging` in routes.yaml says them.']
      : [])
  ]
}
