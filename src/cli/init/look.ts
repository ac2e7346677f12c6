import { credentialOf } from '../../config/schema/routes.ts'
import { type Access, anonymous, isOk, isSuccess, noReply, type Reply } from './client.ts'
import { codeOf, codeTest, envelopeCodeOf, messageOf, shapeOf, userOf } from './detect.ts'
import type { DraftRoute } from './files.ts'
import { claimsOf } from '../../login/login-response.ts'
import { callOf, logoutOf } from './questions.ts'
import { asCookies, type BackendSession, type Look } from './sign-in.ts'

interface SignedInLook extends Look {
  readonly session: BackendSession
}

/** Requests that are kept for some routes, and for the errors and the sign-out at the end. */
const reserved = 14
const ofTheEnd = 5

export async function lookWith(look: SignedInLook): Promise<void> {
  const access = await findAccess(look)
  try {
    await findUser(look, access)
    await lookAtRoutes(look, access, look.session)
    await findErrors(look, access)
  } finally {
    await signOut(look, access)
  }
}

async function findAccess(look: SignedInLook): Promise<Access> {
  const { answers, draft, session } = look
  const likely = likelyAccess(session, answers.text('token-header'))
  const proven = await prove(look, likely)
  const access = proven ?? likely[0] ?? anonymous
  draft.upstream['credential'] = access.as
  if (credentialOf(access.as).as !== 'cookies') draft.source['cookies'] = undefined
  if (access.credential.token === undefined) draft.source['token'] = undefined
  if (proven === undefined) {
    draft.notes.upstreams.push('TODO `credential`: no call showed it (--token-header).')
  }
  return access
}

function likelyAccess({ token, cookies, csrf, source }: BackendSession, told?: string): Access[] {
  const isForCsrf = csrf !== undefined && csrf.cookie === undefined
  const credential = { cookies: cookies ?? '', ...(isForCsrf && { token: token ?? '' }) }
  const ofCookies = cookies === undefined ? [] : [{ credential, as: asCookies(csrf) }]
  if (token === undefined || isForCsrf) return ofCookies
  const inHeader = (name: string) => `header:${name.toLowerCase()}`
  const header = typeof source.token === 'object' ? source.token.header : 'authorization'
  const ways = [
    ...(header === 'authorization' ? [] : [inHeader(header)]),
    'bearer',
    ...['x-access-token', 'x-token', 'authorization'].map(inHeader),
    { as: 'bearer', scheme: 'Token' },
    { as: 'bearer', scheme: 'JWT' },
    ...['token', 'satoken', 'x-auth-token'].map(inHeader)
  ]
  const ofToken = told === undefined ? ways : [inHeader(told)]
  return [...ofToken.map(as => ({ credential: { token }, as })), ...ofCookies]
}

/** Where no form works at two paths, another is needed. */
const maxProofs = 2

/** The first form with which a GET call succeeds that fails without a credential. */
async function prove(look: SignedInLook, likely: readonly Access[]): Promise<Access | undefined> {
  const { client, answers, draft, session } = look
  const paths = draft.routes.slice(0, 3).map(route => route.path)
  const named = [paths, answers.text('user-path') ?? []].flat()
  let proofs = 0
  for (const path of [...named, ...likelyUserPaths(look)]) {
    if (client.remaining() < reserved || proofs === maxProofs) return undefined
    const bare = await client.get(path)
    const isThere = named.includes(path) || ![404, 405].includes(bare.status)
    if (isSuccess(bare, session.known) || !isThere || bare.place === path) continue
    proofs++
    for (const access of likely) {
      const reply = await client.get(path, access)
      if (isSuccess(reply, session.known)) return { ...access, path }
      if ([0, 404, 405].includes(reply.status)) break
    }
  }
  return undefined
}

const userCalls =
  'me users/me info profile userinfo user account user/info getInfo user/getUserInfo'.split(' ')

function likelyUserPaths({ session, draft }: SignedInLook): string[] {
  const { path: signInPath } = session
  const slash = signInPath.endsWith('/') ? '/' : ''
  const folders = signInPath.split('/').filter(Boolean)
  const above = folders.map((_, index) => ['', ...folders.slice(0, index)].join('/')).toReversed()
  const besideRoute = draft.routes[0]?.path.replace(/\/[^/]*\/?$/, '') ?? ''
  const bases = [...new Set([...above, besideRoute])]
  const paths = userCalls.flatMap(name => bases.map(base => `${base}/${name}${slash}`))
  return [signInPath, ...paths].slice(0, 22)
}

async function findUser(look: SignedInLook, access: Access): Promise<void> {
  const { draft } = look
  const user = await userFrom(look, access)
  draft.source['user'] = user ?? { id: 'id' }
  const nobody = 'TODO Who the user is: nothing told it (--user-path). Before, nobody can sign in.'
  const noRoles = 'TODO `roles`: the data of the user have none.'
  if (user?.roles === undefined) draft.notes.login.push(user ? noRoles : nobody)
}

async function userFrom(look: SignedInLook, access: Access) {
  const { client, answers, session } = look
  const { reply: like, known, username } = session
  const told = answers.text('user-path')
  const ofSignIn = told === undefined ? userOf(like.body, username) : undefined
  if (ofSignIn !== undefined) return ofSignIn
  // The call that showed how the token is taken, first.
  const likely = new Set([access.path ?? session.path, ...likelyUserPaths(look)])
  for (const path of told === undefined ? likely : [told]) {
    if (client.remaining() < reserved) break
    const reply = await client.get(path, access)
    const success = codeTest(envelopeCodeOf(reply.body))
    const found = isSuccess(reply, known) && userOf(reply.body, username)
    if (found) return { from: { ...callOf(path), success }, ...found }
  }
  return userInToken(session)
}

/** By paths that go on in the claims of a JSON Web Token. */
function userInToken({ token = '', source, reply, username }: BackendSession) {
  const isAll =
    source.token === '.' || (typeof source.token === 'object' && reply.body === undefined)
  const place = typeof source.token === 'string' ? `${source.token}.` : undefined
  const start = isAll ? '' : place
  const { profile: _, ...members } = userOf(claimsOf(token), username, 'user') ?? {}
  const paths = Object.entries(members).filter(([, path]) => path !== undefined)
  if (start === undefined || paths.length === 0) return undefined
  return Object.fromEntries(paths.map(([name, path]) => [name, `${start}${path}`]))
}

export async function lookAtRoutes(look: Look, access?: Access, session?: BackendSession) {
  const { client, draft } = look
  const message = messageOf(session?.refusal.body)
  for (const route of draft.routes) {
    const isAsked = client.remaining() > ofTheEnd
    const reply = isAsked ? await replyAt(look, route, access) : noReply('not asked')
    if (isSuccess(reply, session?.known)) route.seen = shapeOf(reply, message)
    else {
      draft.notes.routes.push(`TODO \`shape\`: GET ${route.path} gave no data (${reply.summary}).`)
    }
  }
  const text = 'Guessed: page and size pass as the console sends them (else: `paging`).'
  if (draft.routes.some(({ seen }) => seen?.isList)) draft.notes.routes.push(text)
}

/** Django and FastAPI lead to the path with a slash. */
async function replyAt({ client }: Look, route: DraftRoute, access?: Access): Promise<Reply> {
  const reply = await client.get(route.path, access)
  if (reply.place !== route.path) return reply
  const path = `${route.path}/`
  const other = await client.get(path, access)
  if (!isOk(other)) return reply
  route.path = path
  return other
}

async function findErrors(look: SignedInLook, access: Access): Promise<void> {
  const { client, answers, draft, session } = look
  const cookies = access.credential.cookies?.replaceAll(/=[^;]*/g, '=made-up')
  const credential = cookies === undefined ? { token: 'made-up-0123456789' } : { cookies }
  // Where a list is open to all, a wrong token may be refused all the same.
  const route = draft.routes.find(({ seen }) => seen)?.path
  let reply: Reply | undefined
  let test: object | undefined
  for (const path of new Set([access.path, route])) {
    if (path === undefined || test !== undefined) continue
    reply = await client.get(path, { ...access, credential })
    test = endedTest(reply, session)
  }
  draft.upstream['sessionEnded'] = test
  if (test === undefined) {
    draft.notes.upstreams.push('TODO `sessionEnded`: how an ended token is refused.')
  }
  const failed = [reply, session.refusal].find(
    each => each?.body !== undefined && each.status >= 400
  )
  const message = answers.text('error-path') ?? messageOf(failed?.body)
  draft.upstream['errors'] = message && { message: [message] }
}

function endedTest(reply: Reply, { refusal, known }: BackendSession): object | undefined {
  // Its query tells the page that was asked for.
  const place = reply.place?.split('?', 1)[0]
  // All redirects lead to a path that begins with /.
  if (place === '/') return undefined
  if (place !== undefined) return { status: [reply.status], location: [place] }
  if ([401, 419, 440].includes(reply.status)) return { status: [reply.status] }
  const code = isOk(reply) && !isSuccess(reply, known) ? codeOf(reply.body) : undefined
  // A code that a wrong password has, too, is one for all failures.
  const isForAll = typeof code?.value === 'boolean' || code?.value === codeOf(refusal.body)?.value
  return isForAll ? undefined : codeTest(code)
}

/** Ends the back-end's session. A call that was not named is kept only if the token is dead then. */
async function signOut({ client, answers, draft, session }: SignedInLook, access: Access) {
  const told = answers.text('logout-path')
  for (const call of told === undefined ? likelyLogouts(session.path) : [logoutOf(told)]) {
    const { status } = await client.ask(call, access)
    const after = access.path === undefined ? undefined : await client.get(access.path, access)
    const isEnded = after !== undefined && !isSuccess(after, session.known)
    if (told !== undefined || isEnded) draft.source['logout'] = call
    if (isEnded) return
    if (![404, 405].includes(status)) break
  }
  draft.notes.login.push('TODO `logout`: no call ended the back-end’s session (--logout-path).')
}

/** `/auth/login` → `/auth/logout`, `/users/sign_in` → `/users/sign_out`, `/sessions` → `DELETE` */
function likelyLogouts(path: string) {
  if (/sessions?\/?$/.test(path)) return [{ path, method: 'DELETE' }]
  const [, before, first, slash] = /^(.*(?:log|sign)[-_]?)(i)n(\/?)$/i.exec(path) ?? []
  if (before === undefined) return []
  const out = `${before}${first === 'I' ? 'Out' : 'out'}${slash}`
  return ['POST', 'DELETE'].map(method => ({ path: out, method }))
}
