/** Signs in at a back-end once, and finds out how its sign-in works. */
import { randomBytes } from 'node:crypto'
import { valueAt } from '../../json/values.ts'
import { CommandError } from '../command.ts'
import type { BackendClient, BackendResponse, Credential } from './client.ts'
import { type BackendEnvelope, envelopeOf, isSuccess, signInTests } from './envelope.ts'
import type { SignInTests } from './envelope.ts'
import { typeLines, typesOf, type Redaction } from './redaction.ts'
import { type TokenPaths, tokenPathsOf, type UserPaths, userPathsOf } from './user.ts'

/** The form of the back-end's sign-in call. */
export interface SignInCall {
  readonly path: string
  readonly format: 'json' | 'form'
  /** Names of the members with the user name and the password. */
  readonly username: string
  readonly password: string
  /** Members that the back-end wants besides. */
  readonly extra: Readonly<Record<string, unknown>>
}

export interface Account {
  readonly username: string
  readonly password: string
}

export interface SignIn {
  readonly call: SignInCall
  readonly response: BackendResponse
  readonly tests: SignInTests
  readonly envelope?: BackendEnvelope
  readonly tokens?: TokenPaths
  /** Names of the cookies that the sign-in sets. */
  readonly cookies: readonly string[]
  readonly user?: UserPaths
  /** The credential, in a style still to be found. */
  readonly credential: Omit<Credential, 'style'>
}

interface SignInContext {
  readonly client: BackendClient
  readonly redaction: Redaction
}

/**
 * A refusal is asked for under a made-up name first: it shows that the path is right before the
 * password is sent.
 * @throws CommandError when there is no sign-in at the path, or it refuses the account
 */
export async function signIn(
  { client, redaction }: SignInContext,
  call: SignInCall,
  { username, password }: Account
): Promise<SignIn> {
  redaction.add(password, 'the password')
  const post = async (name: string, secret: string) =>
    await client.post(call.path, {
      format: call.format,
      members: { ...call.extra, [call.username]: name, [call.password]: secret }
    })
  const domain = username.includes('@') ? '@example.invalid' : ''
  const nobody = `nobody-${randomBytes(4).toString('hex')}${domain}`
  const noPassword = randomBytes(9).toString('base64url')
  const refusal = await post(nobody, noPassword)
  await assertThere(client, call, refusal)
  const response = await post(username, password)
  assertNoRedirect(call, response)
  const tokens = tokenPathsOf(response.body)
  const text = (path: string | undefined) =>
    path === undefined ? undefined : String(valueAt(response.body, path.split('.')))
  const [token, refreshToken] = [text(tokens?.token), text(tokens?.refreshToken)]
  for (const secret of [token, refreshToken]) {
    if (secret !== undefined) redaction.add(secret, 'a token of the back-end')
  }
  const cookies = response.cookies.filter(cookie => !isDeletion(cookie))
  if (!isSuccess(response) || (token === undefined && looksAlike(response, refusal))) {
    throw new CommandError(refusalText(client, call, response))
  }
  const envelope = envelopeOf(response)
  const user = userPathsOf(response.body, username)
  return {
    call,
    response,
    tests: signInTests(response, refusal, tokens?.token),
    ...(envelope !== undefined && { envelope }),
    ...(tokens !== undefined && { tokens }),
    cookies: cookies.map(cookie => cookie.slice(0, cookie.indexOf('='))),
    ...(user !== undefined && { user }),
    credential: {
      ...(token !== undefined && { token }),
      ...(cookies.length > 0 && { cookies: cookies.join('; ') })
    }
  }
}

/** @throws CommandError if a path that cannot exist is answered in the same way */
async function assertThere(
  client: BackendClient,
  call: SignInCall,
  refusal: BackendResponse
): Promise<void> {
  assertNoRedirect(call, refusal)
  const isAbsent = refusal.status === 404 || refusal.status === 405 || refusal.status === 501
  if (!isAbsent) return
  const nowhere = await client.get(`/${randomBytes(6).toString('hex')}`)
  const isSame = refusal.status !== 404 || looksAlike(nowhere, refusal)
  if (!isSame) return
  throw new CommandError(
    `${client.url}${call.path} is no sign-in: POST is answered ${refusal.status}. ` +
      'Name the right path with --login-path; the password has not been sent.'
  )
}

function assertNoRedirect({ path }: SignInCall, { status }: BackendResponse): void {
  if (status < 300 || status > 399) return
  throw new CommandError(
    `The sign-in ${path} redirects (${status}). init sends a password only to the address that ` +
      'you named: name the address behind the redirect (often https).'
  )
}

function isDeletion(cookie: string): boolean {
  return cookie.endsWith('=') || cookie.endsWith('=deleted')
}

/** The same status, code and members: nothing tells both apart. */
function looksAlike(left: BackendResponse, right: BackendResponse): boolean {
  const shape = ({ status, body }: BackendResponse) => JSON.stringify([status, typesOf(body)])
  return shape(left) === shape(right) && codeText(left) === codeText(right)
}

function codeText(response: BackendResponse): string {
  return String(envelopeOf(response)?.ok[0])
}

function refusalText(client: BackendClient, call: SignInCall, response: BackendResponse): string {
  const code = envelopeOf(response)?.ok[0]
  const answer = `${response.status}${code === undefined ? '' : `, code ${String(code)}`}`
  const types = response.isJson ? typeLines(typesOf(response.body), '  ').join('\n') : '  no JSON'
  return (
    `${client.url}${call.path} refused the sign-in (${answer}):\n${types}\n` +
    `Are the user name and password right, and does it take the members "${call.username}" and ` +
    `"${call.password}" (--login-fields), as ${call.format} (--login-format)?`
  )
}
