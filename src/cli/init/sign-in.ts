/** Signs in at a back-end: under a made-up name, which shows how it refuses, and then once. */
import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { textAt } from '../../json/values.ts'
import { fill } from '../../login/back-end-call.ts'
import { cookiesAfter } from '../../login/credential-cookies.ts'
import type { Credential } from '../../session/types.ts'
import { type Client, isOk, isSuccess, type Reply } from './client.ts'
import { codeOf, find, membersOf, messageOf } from './detect.ts'
import { type Draft, sourcePlace } from './files.ts'

/** The back-end's sign-in call; `body` has `{username}` and `{password}`. */
export interface SignInCall {
  readonly path: string
  readonly format: 'json' | 'form'
  readonly body: Readonly<Record<string, unknown>>
}

/** The back-end's session. */
export interface BackendSession {
  readonly call: SignInCall
  readonly username: string
  readonly refusal: Reply
  readonly reply: Reply
  readonly credential: Credential
  /** The header of the response with the token, where the body has none. */
  readonly header?: string | undefined
}

type Account = Readonly<Record<'username' | 'password', string>>

async function post(client: Client, call: SignInCall, account: Account) {
  const body = fill(call.body, account) as Record<string, unknown>
  return await client.ask({ ...call, method: 'POST', body })
}

/**
 * The refusal of a made-up account: the real one must not be locked out, and its password goes to
 * no path that is no sign-in.
 * @param like the name of the real account
 * @returns a text that says why there is none
 */
export async function askRefusal(client: Client, call: SignInCall, like: string) {
  const random = randomBytes(6).toString('hex')
  const username = `nobody-${random}${like.includes('@') ? '@example.invalid' : ''}`
  const reply = await post(client, call, { username, password: `x-${random}` })
  if (reply.status === 0) return `The sign-in ${call.path}: ${reply.summary}.`
  if (reply.status >= 300 && reply.status < 400) {
    return `The sign-in ${call.path} redirects (${reply.status}): name the address behind it.`
  }
  if (![404, 405, 501].includes(reply.status)) return reply
  if (reply.status === 404 && !isAlike(await client.get(`/${random}`), reply)) return reply
  return `${call.path} is no sign-in (${reply.summary}). The password has not been sent.`
}

/** @returns a text that says why nobody is signed in */
export async function signIn(client: Client, call: SignInCall, account: Account, refusal: Reply) {
  const reply = await post(client, call, account)
  const { body, headers } = reply
  const inBody = find(body, 'token')?.path
  const isForToken = (name: string) => /^authorization$|(^|-)(token|auth)$/.test(name)
  const header = inBody === undefined ? Object.keys(headers).find(isForToken) : undefined
  const token = textAt(body, inBody ?? '') ?? headers[header ?? '']
  const refreshToken = textAt(body, find(body, 'refreshToken')?.path ?? '')
  const setCookie = headers['set-cookie']
  const cookies = cookiesAfter('', setCookie, cookieNames(setCookie))
  const credential = {
    // As the gateway reads it: without a scheme such as `Bearer`.
    ...(typeof token === 'string' && { token: token.trim().split(' ').at(-1) ?? '' }),
    ...(refreshToken !== undefined && { refreshToken }),
    ...(cookies !== '' && { cookies })
  }
  const { username } = account
  const session: BackendSession = { call, username, refusal, reply, credential, header }
  const isIn = isOk(reply) && (body === undefined || isSuccess(reply))
  if (isIn && ('token' in credential || !isAlike(reply, refusal))) return session
  return (
    `The sign-in was refused (${reply.summary}). Are the user name and password right, and ` +
    `the members of its body (${Object.keys(call.body).join(', ')}, as ${call.format})?`
  )
}

function cookieNames(setCookie: string | string[] | undefined): string[] {
  return [setCookie ?? []].flat().map(cookie => cookie.split('=', 1)[0] ?? '')
}

const likelyRefused = { status: [400, 401, 403, 404, 422] }

/** How the source tells a sign-in from a refusal, and where it finds the credential. */
export function describeSignIn(draft: Draft, session: BackendSession): void {
  const { source, notes, secrets } = draft
  const { reply, refusal, credential, header } = session
  const token = find(reply.body, 'token')?.path
  const refreshToken = find(reply.body, 'refreshToken')?.path
  const { success, refused } = testsOf(reply, refusal, token)
  const inHeader = header && { header }
  const pairs = credential.cookies?.split('; ')
  const cookies = pairs && cookieNames(pairs)
  const ofCookies = (pairs ?? []).map(pair => pair.slice(pair.indexOf('=') + 1))
  secrets.push(credential.token ?? '', credential.refreshToken ?? '', ...ofCookies)
  const outcomes = [
    { is: 'refused', ...refused },
    { is: 'success', ...success }
  ]
  Object.assign(source, { outcomes, message: messageOf(refusal.body) })
  Object.assign(source, { token: token ?? inHeader, refreshToken, cookies })
  if (refused === likelyRefused && isOk(refusal)) {
    notes.push([`${sourcePlace}.outcomes`, 'TODO How a wrong password is refused: not seen.'])
  }
  if (refreshToken !== undefined) {
    const text = 'TODO `expires`, `refresh`: how the token is renewed was not tried.'
    notes.push([`${sourcePlace}.refreshToken`, text])
  }
}

/** @param token the path of the token, which a refusal does not have */
function testsOf(success: Reply, refusal: Reply, token: string | undefined) {
  const test = (path: string | undefined) => path && { path }
  const byStatus = { status: [success.status] }
  if (!isOk(refusal)) {
    const status = [...new Set([...likelyRefused.status, refusal.status])]
    return { success: byStatus, refused: { status } }
  }
  const [yes, no] = [codeOf(success.body), codeOf(refusal.body)]
  if (yes !== undefined && yes.path === no?.path && yes.value !== no.value) {
    const { path } = yes
    return { success: { path, in: [yes.value] }, refused: { path, in: [no.value] } }
  }
  const inBoth = new Set(membersOf(success.body).map(({ path }) => path))
  const onlyRefused = membersOf(refusal.body).find(({ path, value }) => !inBoth.has(path) && value)
  return { success: test(token) || byStatus, refused: test(onlyRefused?.path) || likelyRefused }
}

/** The same status, code and members: nothing tells both apart. */
function isAlike(left: Reply, right: Reply): boolean {
  const traits = ({ status, body }: Reply) => [
    status,
    codeOf(body)?.value,
    membersOf(body).map(({ path }) => path)
  ]
  return isDeepStrictEqual(traits(left), traits(right))
}
