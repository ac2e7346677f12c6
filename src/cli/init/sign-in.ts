/** Signs in at a back-end: under a made-up name, which shows how it refuses, and then once. */
import { randomBytes } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import { textAt } from '../../json/values.ts'
import type { CsrfConfig } from '../../config/schema/upstreams.ts'
import { fill } from '../../login/back-end-call.ts'
import { cookiesAfter } from '../../login/login-response.ts'
import { cookieName } from '../../session/cookie-header.ts'
import { type Answers, readPassword } from '../prompt.ts'
import { type Access, type Client, isOk, isSuccess, type Reply } from './client.ts'
import { codeOf, codeTest, find, membersOf, messageOf } from './detect.ts'
import type { Draft } from './files.ts'
import { askSignIn, userQuestion } from './questions.ts'

const likelyRefused = [400, 401, 403, 404, 422]

export interface Look {
  readonly client: Client
  readonly answers: Answers
  readonly draft: Draft
}

type SignInCall = Awaited<ReturnType<typeof askSignIn>>

export type BackendSession = Exclude<Awaited<ReturnType<typeof signIn>>, string>

/** @returns a text that says why nobody is signed in */
export async function signIn({ client, answers, draft }: Look) {
  const call = await askSignIn(answers)
  const { path, format, body } = call
  Object.assign(draft.source, call)
  if (/graphql\/?$/i.test(path)) {
    return `${path}: a sign-in by GraphQL is not found out. Its \`body\` has \`query\` and \`variables\`.`
  }
  const username = await answers.ask('user', userQuestion)
  const plain = await askRefusal(client, call, username)
  const before = await findBefore(client, path, plain)
  const refusal = before ? await askRefusal(client, call, username, before) : plain
  if (typeof refusal === 'string') return refusal
  const password = await readPassword('Its password: ', answers.io)
  draft.secrets.push(password)
  const filled = fill(body, { username, password })
  const reply = await client.ask({ ...call, method: 'POST', body: filled }, before)
  const { token, cookies, csrf, source } = credentialIn(reply, before)
  const hasAnswer = isOk(reply) && (reply.body === undefined || isSuccess(reply))
  // A form that answers with redirects.
  const isElsewhere = reply.place !== undefined && reply.place !== refusal.place
  if (!(hasAnswer || isElsewhere) || (token === undefined && isAlike(reply, refusal))) {
    return (
      `The sign-in was refused (${reply.summary}). Are the user name and password right, and ` +
      `the members of its body (${Object.keys(body).join(', ')}, as ${format})?`
    )
  }
  const pairs = cookies?.split('; ') ?? []
  draft.secrets.push(token ?? '', ...pairs.map(pair => pair.slice(pair.indexOf('=') + 1)))
  const likely = likelyRefused.filter(status => status !== before?.status)
  const outcomes = outcomesOf(reply, refusal, source.token, likely)
  const message = messageOf(refusal.body)
  Object.assign(draft.source, { before: before?.path, outcomes, message }, source)
  if (outcomes.length < 2) {
    draft.notes.login.push('TODO `outcomes`: how a wrong password is refused was not seen.')
  }
  if (source.refreshToken !== undefined) {
    draft.notes.login.push('TODO `expires`, `refresh`: how the token is renewed was not tried.')
  }
  const known = codeTest(codeOf(reply.body))
  return { path, username, refusal, reply, known, token, cookies, csrf, source }
}

/** A call that sets the CSRF cookie: a sign-in without it is 419 (Laravel), or 403 (others). */
async function findBefore(client: Client, path: string, refusal: Reply | string) {
  if (typeof refusal === 'string' || ![403, 419].includes(refusal.status)) return undefined
  for (const each of [path, '/sanctum/csrf-cookie', '/']) {
    const { cookies, csrf } = credentialIn(await client.get(each))
    if (cookies !== undefined && csrf?.cookie !== undefined) {
      const { status } = refusal
      return { path: each, status, credential: { cookies }, as: asCookies(csrf) }
    }
  }
  return undefined
}

export function asCookies(csrf?: CsrfConfig): Access['as'] {
  return csrf ? { as: 'cookies', csrf } : 'cookies'
}

const isAgainstForgery = /csrf|xsrf/i
/** Of Angular, Laravel and Spring; of Django; of Tornado. */
const csrfHeaders = new Map([
  ['XSRF-TOKEN', 'x-xsrf-token'],
  ['csrftoken', 'x-csrftoken'],
  ['_xsrf', 'x-xsrftoken']
])

function csrfOf(cookies: readonly string[], place: string): CsrfConfig | undefined {
  const cookie = cookies.find(name => isAgainstForgery.test(name))
  if (cookie !== undefined) return { cookie, header: csrfHeaders.get(cookie) ?? 'x-csrf-token' }
  const isToken = cookies.length > 0 && isAgainstForgery.test(place)
  return isToken ? { header: 'x-csrf-token' } : undefined
}

/**
 * Of a made-up account: the real one must not be locked out, and its password goes to no other path.
 * @returns a text that says why there is none
 */
async function askRefusal(client: Client, call: SignInCall, like: string, access?: Access) {
  const random = randomBytes(6).toString('hex')
  const username = `nobody-${random}${like.includes('@') ? '@example.invalid' : ''}`
  const body = fill(call.body, { username, password: `x-${random}` })
  const reply = await client.ask({ ...call, method: 'POST', body }, access)
  const { status, summary } = reply
  if (status === 0) return `The sign-in ${call.path}: ${summary}.`
  if (reply.place === call.path.replace(/(.)\/$/, '$1')) {
    return `The sign-in ${call.path} redirects (${status}): name the address behind it.`
  }
  const isMissing = status === 404 && isAlike(await client.get(`/${random}`), reply)
  if (!isMissing && ![405, 501].includes(status)) return reply
  return `${call.path} is no sign-in (${summary}). The password has not been sent.`
}

function credentialIn({ body, headers }: Reply, before?: Access) {
  const whole = typeof body === 'string' && /^\S{16,}$/.test(body) ? body : undefined
  const named = find(body, 'token') ?? find(body, 'bareToken', 1) ?? find(body, 'csrf')
  const path = whole === undefined ? named?.path : '.'
  const isForToken = (name: string) => /^authorization$|(^|-)(token|auth)$/.test(name)
  const header = path === undefined ? Object.keys(headers).find(isForToken) : undefined
  // As the gateway reads it: without a scheme such as `Bearer`.
  const inHeader = header && String(headers[header]).split(' ').at(-1)
  const setCookie = [headers['set-cookie'] ?? []].flat()
  const former = before?.credential.cookies ?? ''
  const names = [...former.split('; '), ...setCookie].map(cookieName)
  const cookies = cookiesAfter(former, setCookie, names) || undefined
  const csrf = csrfOf(names, path ?? header ?? '')
  return {
    token: whole ?? (path === undefined ? inHeader : textAt(body, path)),
    cookies,
    csrf,
    source: {
      token: path ?? (header && { header }),
      refreshToken: find(body, 'refreshToken')?.path,
      cookies: cookies && [...new Set(names)].filter(Boolean)
    }
  }
}

/** What tells a sign-in from a refusal: the status, a code, or a member that only one of them has. */
function outcomesOf(success: Reply, refusal: Reply, token: unknown, likely: readonly number[]) {
  const byStatus = { is: 'success', status: [success.status] }
  if (success.place !== undefined && refusal.place !== undefined) {
    // A test by its place would fit the success, too.
    if (success.place.startsWith(refusal.place)) return [byStatus]
    return [{ is: 'refused', location: [refusal.place] }, byStatus]
  }
  if (success.status !== refusal.status) {
    const status = [...new Set([...likely, refusal.status])]
    return [{ is: 'refused', status }, byStatus]
  }
  const [yes, no] = [codeOf(success.body), codeOf(refusal.body)]
  if (yes !== undefined && yes.path === no?.path && yes.value !== no.value) {
    return [
      { is: 'refused', ...codeTest(no) },
      { is: 'success', ...codeTest(yes) }
    ]
  }
  const inBoth = new Set(membersOf(success.body).map(({ path }) => path))
  const own = membersOf(refusal.body).find(({ path, value }) => !inBoth.has(path) && value)
  const refused = own ? [{ is: 'refused', path: own.path }] : []
  return [
    ...refused,
    typeof token === 'string' && token !== '.' ? { is: 'success', path: token } : byStatus
  ]
}

/** The same status, place, code and members: nothing tells both apart. */
function isAlike(left: Reply, right: Reply): boolean {
  const [one, other] = [left, right].map(({ status, place, body }) => {
    const paths = membersOf(body).map(({ path }) => path)
    return [status, place, codeOf(body)?.value, ...paths]
  })
  return isDeepStrictEqual(one, other)
}
