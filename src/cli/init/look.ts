/** Looks at a back-end with its session: credential, user, lists, errors, sign-out, in this order. */
import type { Answers } from './answers.ts'
import {
  type Access,
  anonymous,
  type Client,
  type CredentialForm,
  isOk,
  isSuccess,
  type Reply
} from './client.ts'
import { codeOf, messageOf, shapeOf, userOf } from './detect.ts'
import { type Draft, sourcePlace, upstreamPlace } from './files.ts'
import type { BackendSession } from './sign-in.ts'

export interface Look {
  readonly client: Client
  readonly answers: Answers
  readonly draft: Draft
}

interface SignedInLook extends Look {
  readonly session: BackendSession
}

/** The credential, and the path that needs it. */
interface Found {
  readonly access: Access
  readonly path?: string
}

/** Requests that are kept for some routes, and for the errors and the sign-out at the end. */
const reserved = 14
const ofTheEnd = 5

export async function lookWith(look: SignedInLook): Promise<void> {
  const { credential } = look.session
  let found: Found = { access: { credential, form: formsFor(look.session)[0] ?? anonymous.form } }
  try {
    found = (await findAccess(look)) ?? found
    await findUser(look, found.access)
    await lookAtRoutes(look, found.access, look.session)
    await findErrors(look, found)
  } finally {
    await signOut(look, found)
  }
}

const commonForms: readonly CredentialForm[] = [
  { credentialStyle: 'bearer' },
  { credentialStyle: 'header:x-access-token' },
  { credentialStyle: 'header:x-token' },
  { credentialStyle: 'header:authorization' },
  { credentialStyle: 'bearer', credentialScheme: 'Token' },
  { credentialStyle: 'header:token' }
]

const ofHeader = (name: string) => ({ credentialStyle: `header:${name.toLowerCase()}` })

function formsFor({ credential, header }: BackendSession): CredentialForm[] {
  const ofToken = [...(header === undefined ? [] : [ofHeader(header)]), ...commonForms]
  const ofCookies = credential.cookies === undefined ? [] : [{ credentialStyle: 'cookies' }]
  return credential.token === undefined ? ofCookies : [...ofToken, ...ofCookies]
}

async function findAccess(look: SignedInLook): Promise<Found | undefined> {
  const { answers, draft, session } = look
  const told = answers.text('token-header')
  let forms: CredentialForm[] = told === undefined ? formsFor(session) : [ofHeader(told)]
  let found = await prove(look, forms)
  if (found === undefined && told === undefined) {
    const asked = await answers.optional('The header that takes the token, such as x-api-token')
    forms = asked === undefined ? forms : [ofHeader(asked)]
    found = asked === undefined ? undefined : await prove(look, forms)
  }
  const { credentialStyle: as, credentialScheme: scheme } =
    found?.access.form ?? forms[0] ?? anonymous.form
  draft.upstream['credential'] = scheme === undefined ? as : { as, scheme }
  if (as !== 'cookies') draft.source['cookies'] = undefined
  if (found === undefined) {
    const text = 'TODO How the back-end takes its token: no call showed it (--token-header).'
    draft.notes.push([`${upstreamPlace}.credential`, text])
  }
  return found
}

/** Where no form works at two paths, another is needed. */
const maxProofs = 2

/** The first form with which a GET call succeeds that fails without a credential. */
async function prove(
  { client, answers, draft, session }: SignedInLook,
  forms: readonly CredentialForm[]
): Promise<Found | undefined> {
  const { credential, call, reply: like } = session
  const routes = draft.routes.slice(0, 3).map(route => route.path)
  const named = [...routes, ...[answers.text('user-path') ?? []].flat()]
  let proofs = 0
  for (const path of [...named, ...likelyUserPaths(call.path)]) {
    if (client.remaining() < reserved || proofs === maxProofs) return undefined
    const bare = await client.get(path)
    if (isSuccess(bare, like) || (bare.status === 404 && !named.includes(path))) continue
    proofs++
    for (const form of forms) {
      const { cookies = '', token = '' } = credential
      const sent = form.credentialStyle === 'cookies' ? { cookies } : { token }
      const access = { credential: sent, form }
      const reply = await client.get(path, access)
      if (isSuccess(reply, like)) return { access, path }
      if (reply.status === 404 || reply.status === 0) break
    }
  }
  return undefined
}

const userCalls = ['me', 'users/me', 'user/info', 'getInfo', 'user/getUserInfo', 'userinfo']

/** Common paths of the user's call: the sign-in's own, and those below its folders. */
function likelyUserPaths(signInPath: string): string[] {
  const slash = signInPath.endsWith('/') ? '/' : ''
  const folders = signInPath.split('/').filter(Boolean)
  const bases = folders.map((_, index) => ['', ...folders.slice(0, index)].join('/'))
  const paths = userCalls.flatMap(name => bases.map(base => `${base}/${name}${slash}`))
  return [signInPath, ...paths].slice(0, 14)
}

/** From the sign-in's response, or a second call that answers who the user is. */
async function findUser({ client, answers, draft, session }: SignedInLook, access: Access) {
  const { reply: like, username, call } = session
  const search = async (paths: readonly string[]) => {
    for (const path of paths) {
      if (client.remaining() < reserved) return undefined
      const reply = await client.get(path, access)
      const user = isSuccess(reply, like) && userOf(reply.body, username)
      const code = codeOf(reply.body)
      const success = code && { path: code.path, in: [code.value] }
      if (user) return { from: { path, success }, ...user }
    }
    return undefined
  }
  const told = answers.text('user-path')
  let user = told === undefined ? userOf(like.body, username) : undefined
  user ??= await search(told === undefined ? likelyUserPaths(call.path) : [told])
  if (user === undefined) {
    const asked = await answers.optional('The GET call that tells who the user is, such as /me')
    user = asked === undefined ? undefined : await search([asked])
  }
  draft.source['user'] = user ?? { id: 'id' }
  const nobody = 'TODO Who the user is: nothing told it (--user-path). Before, nobody can sign in.'
  const noRoles = 'TODO `roles`: the data of the user have none.'
  if (user?.roles === undefined) draft.notes.push([`${sourcePlace}.user`, user ? noRoles : nobody])
}

export async function lookAtRoutes(look: Look, access?: Access, session?: BackendSession) {
  const { client, draft } = look
  const message = messageOf(session?.refusal.body)
  for (const [index, route] of draft.routes.entries()) {
    const isAsked = client.remaining() > ofTheEnd
    const reply = isAsked ? await client.get(route.path, access) : undefined
    if (reply !== undefined && isSuccess(reply, session?.reply)) {
      draft.routes[index] = { ...route, seen: shapeOf(reply.body, message) }
    } else {
      const why = reply?.summary ?? 'not asked'
      const text = `TODO \`shape\`: GET ${route.path} gave no data (${why}).`
      draft.notes.push([`routes.routes.${route.name}`, text])
    }
  }
  const text = 'Guessed: page and size pass as the console sends them (else: `paging`).'
  if (draft.routes.some(({ seen }) => seen?.isList)) draft.notes.push([upstreamPlace, text])
}

/** How the back-end refuses a token that has ended, and where its errors have their text. */
async function findErrors(
  { client, answers, draft, session }: SignedInLook,
  { access, path }: Found
): Promise<void> {
  const { refusal, reply: like } = session
  const cookies = access.credential.cookies?.replaceAll(/=[^;]*/g, '=made-up')
  const credential = cookies === undefined ? { token: 'made-up-0123456789' } : { cookies }
  const reply = path === undefined ? undefined : await client.get(path, { ...access, credential })
  const test = reply && endedTest(reply, refusal, like)
  draft.upstream['sessionEnded'] = test
  if (test === undefined) {
    const text = 'TODO `sessionEnded`: how the back-end refuses a token that has ended.'
    draft.notes.push([upstreamPlace, text])
  }
  const failed = [reply, refusal].find(each => each?.body !== undefined && each.status >= 400)
  let message = answers.text('error-path') ?? messageOf(failed?.body)
  if (failed) message ??= await answers.optional('The text in an error, such as err.text')
  draft.upstream['errors'] = message && { message: [message] }
}

function endedTest(reply: Reply, refusal: Reply, like: Reply): object | undefined {
  if ([401, 419, 440].includes(reply.status)) return { status: [reply.status] }
  const code = isOk(reply) && !isSuccess(reply, like) ? codeOf(reply.body) : undefined
  // A code that a wrong password has, too, is one for all failures.
  const isForAll = typeof code?.value === 'boolean' || code?.value === codeOf(refusal.body)?.value
  return code === undefined || isForAll ? undefined : { path: code.path, in: [code.value] }
}

/** Ends the back-end's session. A call that was not named is kept only if the token is dead then. */
async function signOut({ client, answers, draft, session }: SignedInLook, { access, path }: Found) {
  const told = answers.text('logout-path')
  const tryCall = async (written: string) => {
    const [, method = 'POST', target] = /^(?:([A-Z]+) )?(\/\S*)$/.exec(written) ?? []
    if (target === undefined) return false
    await client.ask({ path: target, method }, access)
    const after = path === undefined ? undefined : await client.get(path, access)
    const isEnded = after !== undefined && !isSuccess(after, session.reply)
    if (told !== undefined || isEnded) draft.source['logout'] = { path: target, method }
    return isEnded
  }
  if (await tryCall(told ?? likelyLogout(session.call.path))) return
  const question = 'The sign-out, such as POST /auth/logout or DELETE /session'
  const asked = told === undefined ? await answers.optional(question) : undefined
  if (asked !== undefined && (await tryCall(asked))) return
  const text = 'TODO `logout`: no call was seen to end the back-end’s session (--logout-path).'
  draft.notes.push([sourcePlace, text])
}

/** `/auth/login` → `/auth/logout`, `/sessions` → `DELETE /sessions` */
function likelyLogout(path: string): string {
  if (/sessions?\/?$/.test(path)) return `DELETE ${path}`
  const isLogin = /log-?in\/?$/i.test(path)
  return isLogin ? path.replace(/in(?=\/?$)/, 'out').replace(/In(?=\/?$)/, 'Out') : ''
}
