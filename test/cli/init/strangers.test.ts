/** `init` against back-ends of no known family: the folder starts, and says what is left to do. */
import type { IncomingHttpHeaders } from 'node:http'
import t from 'tap'
import { rawNumber } from '../../../src/json/values.ts'
import { gatewayOn, runInit, signInAndGet } from '../../support/init.ts'
import { type Seen, testUpstream } from '../../support/upstream.ts'

const account = { username: 'dora', password: 'pass-Phrase 7' }
const token = 'tok-0123456789abcdef'
const rows = [{ id: 7, title: 'Confidential' }]
const list = { data: rows, total: 1 }

interface Answer {
  /** Without a credential, too. */
  readonly isOpen?: boolean
  readonly status?: number
  readonly json?: unknown
  readonly html?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A back-end: what it answers by `METHOD /path`, with a sign-in that comes first. */
interface Stranger {
  /** Options beside the account. */
  readonly options: string
  readonly signIn: string
  /** Whether a request carries the credential. */
  readonly isIn?: (headers: IncomingHttpHeaders) => boolean
  /** What a POST needs, else it is 419. */
  readonly mustHave?: (headers: IncomingHttpHeaders, seen: Seen) => boolean
  readonly granted?: Answer
  readonly refused?: Answer
  readonly calls?: Readonly<Record<string, Answer | 'silence'>>
  /** To other calls. Default: a page that says 404, also without the credential. */
  readonly unknown?: Answer
  /** Without the credential. */
  readonly out?: Answer
  readonly list?: object
  /** Of the profile. */
  readonly user?: object
  readonly signOut?: string
  /** To a wrong password, in the console. */
  readonly message?: string
  /** What is left to do. */
  readonly notes: readonly RegExp[]
}

const isRight = ({ body }: Seen) => body.includes(account.username) && body.includes('Phrase')
const page404 = { status: 404, html: '<h1>Not found</h1>' }
const own = (status: number) => ({ status, json: { err: { id: 'E1', text: 'No.' } } })
const coded = (code: number, data: unknown) => ({ json: { code, msg: 'text', data } })
const jwt = ['{}', '{"sub":5,"role":"x"}', token].map(each =>
  Buffer.from(each).toString('base64url')
)
const bearer = ({ authorization }: IncomingHttpHeaders) => authorization === `Bearer ${token}`

let count = 0

const form: Stranger = {
  options: '--login-format form --user-path /me --route /orders',
  signIn: '/login',
  isIn: ({ cookie }) => cookie === `JSESSIONID=${token}`,
  granted: { status: 302, headers: { 'location': '/', 'set-cookie': `JSESSIONID=${token}` } },
  refused: { status: 302, headers: { location: '/login?error' } },
  calls: {
    'GET /me': { json: { id: 5, username: 'dora', roles: ['admin'] } },
    'GET /orders': { json: rows, headers: { 'x-wp-total': '57' } },
    'POST /logout': { status: 302, headers: { location: '/login?logout' } }
  },
  out: {
    status: 302,
    get headers() {
      return { location: `/login?next=${++count}` }
    }
  },
  list: { data: rows, total: 57 },
  user: { id: '5' },
  signOut: 'POST /logout',
  notes: []
}

const strangers: Readonly<Record<string, Stranger>> = {
  'a token in a header of its own, 419, sign-out by DELETE': {
    options: '--login-fields user,pass --route /v1/orders --token-header X-Api-Token',
    signIn: '/v1/session',
    isIn: headers => headers['x-api-token'] === token,
    granted: { status: 201, json: { token, expiresIn: 3600 } },
    refused: own(403),
    calls: {
      'GET /v1/me': { json: { userId: 5, login: 'dora', role: 'clerk' } },
      'GET /v1/orders': { json: { rows, count: 57 } }
    },
    out: own(419),
    unknown: own(404),
    list: { data: rows, total: 57 },
    user: { id: '5', username: 'dora' },
    signOut: 'DELETE /v1/session',
    notes: []
  },
  'a session cookie, pages for what is not there, and a user call of its own': {
    options: '--user-path /whoami --route /list',
    signIn: '/enter',
    isIn: ({ cookie }) => cookie === `sid=${token}`,
    granted: { status: 204, headers: { 'set-cookie': `sid=${token}; Path=/; HttpOnly` } },
    refused: { status: 401, html: 'No.' },
    calls: { 'GET /list': { json: rows }, 'GET /whoami': { json: { name: 'dora', $id: 'u-5' } } },
    out: { status: 401, html: 'Sign in.' },
    list,
    user: { id: 'u-5' },
    notes: [/`roles`/, /`logout`/]
  },
  'the token in a header of the response': {
    options: '--route /items:list',
    signIn: '/auth/login',
    isIn: bearer,
    granted: {
      json: { id: 5, username: 'dora', fullName: 'Dora Diaz', roles: ['admin'] },
      headers: { authorization: `Bearer ${token}` }
    },
    calls: { 'POST /auth/logout': { status: 204 } },
    unknown: { json: { data: { items: rows, totalCount: 9 } } },
    list: { data: rows, total: 9 },
    user: { id: '5', name: 'Dora Diaz' },
    signOut: 'POST /auth/logout',
    notes: []
  },
  'a session cookie, and a token against forged requests that a call before the sign-in sets': {
    options: '--route /api/orders',
    signIn: '/login',
    isIn: ({ cookie }) => cookie?.includes(`sid=${token}`) === true,
    mustHave: ({ cookie, ...headers }) =>
      headers['x-xsrf-token'] === 'c=1' && cookie?.includes('XSRF-TOKEN=c%3D1') === true,
    granted: { status: 204, headers: { 'set-cookie': `sid=${token}; Path=/; HttpOnly` } },
    refused: { status: 422, json: { message: 'No.' } },
    calls: {
      'GET /sanctum/csrf-cookie': {
        isOpen: true,
        status: 204,
        headers: { 'set-cookie': 'XSRF-TOKEN=c%3D1; Path=/' }
      },
      'GET /api/user': { json: { id: 5, username: 'dora', roles: ['admin'] } },
      'GET /api/orders': { json: { data: rows } },
      'POST /logout': { status: 204 }
    },
    list: { data: rows },
    user: { id: '5' },
    signOut: 'POST /logout',
    notes: []
  },
  'a form whose answers are redirects': form,
  'a form, where those who are not signed in are led to the first page': {
    ...form,
    out: { status: 302, headers: { location: '/' } },
    notes: [/`sessionEnded`/]
  },
  'a form, the scheme Token, and the user at /users/me': {
    options: '--login-format form --route /api/things',
    signIn: '/api-token/',
    isIn: ({ authorization }) => authorization === `Token ${token}`,
    granted: { json: { token } },
    refused: { status: 400, json: { non_field_errors: ['No.'] } },
    calls: {
      'GET /users/me/': { json: { pk: 5, email: 'd@x.example', username: 'dora' } },
      'GET /api/things': { status: 307, headers: { location: '/api/things/' } },
      'GET /api/things/': { json: { results: rows, count: 3 } }
    },
    list: { data: rows, total: 3 },
    user: { id: '5' },
    notes: [/`roles`/, /`logout`/]
  },
  'status 200 for wrong passwords, and an id that no double holds': {
    options: '--route /news',
    signIn: '/login',
    isIn: bearer,
    granted: coded(0, {
      accessToken: token,
      user: { uid: rawNumber('9007199254740993'), userName: 'dora', roleKey: 'boss' }
    }),
    refused: coded(1001, null),
    calls: { 'GET /news': coded(0, { rows: { list: rows, total: 57 } }) },
    out: coded(4010, null),
    unknown: coded(0, null),
    list: { data: rows, total: 57 },
    user: { id: '9007199254740993' },
    notes: [/`logout`/]
  },
  'a query, a body of objects and a list of texts as error, as of Rails': {
    options: '--login-fields user.email,user.password --route /orders',
    signIn: '/users/sign_in?by=mail',
    isIn: bearer,
    mustHave: (_, { body }) => !body.includes('dora') || body.includes('{"user":{"email":'),
    granted: {
      json: { data: { id: 5, email: 'dora' } },
      headers: { authorization: `Bearer ${token}` }
    },
    refused: { status: 401, json: { errors: ['Wrong password.'] } },
    calls: {
      'DELETE /users/sign_out': { status: 204 },
      'GET /orders': { json: { orders: rows, pagination: { count: 57 } } }
    },
    list: { data: rows, total: 57 },
    user: { id: '5' },
    signOut: 'DELETE /users/sign_out',
    message: 'Wrong password.',
    notes: [/`roles`/]
  },
  'a sign-in and a sign-out with a query, as of Drupal': {
    options: '--route /orders --logout-path /user/logout?_format=json',
    signIn: '/user/login?_format=json',
    isIn: bearer,
    granted: { json: { token, user: { id: 5, name: 'dora' } } },
    refused: { status: 400, json: { message: 'Wrong password.' } },
    calls: {
      'POST /user/logout?_format=json': { status: 204 },
      'GET /orders': { json: { rows, total: 57 } }
    },
    list: { data: rows, total: 57 },
    user: { id: '5' },
    signOut: 'POST /user/logout?_format=json',
    message: 'Wrong password.',
    notes: [/`roles`/]
  },
  'words as codes, and the token in the place of data': {
    options: '--route /orders',
    signIn: '/api/signin',
    isIn: ({ satoken }) => satoken === token,
    granted: { json: { status: 'SUCCESS', info: '', data: token } },
    refused: { json: { status: 'LOGIN_FAILED', info: 'Wrong password.' } },
    calls: {
      'POST /api/signout': { json: { status: 'SUCCESS' } },
      'GET /api/info': {
        json: { status: 'SUCCESS', data: { uid: 5, username: 'dora', roleList: ['x'] } }
      },
      'GET /orders': { json: { status: 'SUCCESS', data: rows, count: 57 } }
    },
    out: { json: { status: 'NOT_SIGNED_IN', info: 'No.' } },
    list: { data: rows, total: 57 },
    user: { id: '5' },
    signOut: 'POST /api/signout',
    message: 'Wrong password.',
    notes: []
  },
  'states that are no codes': {
    options: '--route /orders',
    signIn: '/auth/login',
    isIn: ({ authorization }) => authorization === `JWT ${token}`,
    granted: { json: { token } },
    refused: { status: 401, json: { message: 'No.' } },
    calls: {
      'GET /auth/profile': {
        get json() {
          return { sub: 5, username: 'dora', role: 'x', status: ++count }
        }
      },
      'GET /orders': {
        get json() {
          return { state: ++count, docs: rows, totalDocs: 57 }
        }
      }
    },
    list: { data: rows, total: 57 },
    user: { id: '5' },
    notes: [/`logout`/]
  },
  'a list that does not answer': {
    options: '--route /fast --route /slow',
    signIn: '/login',
    isIn: ({ authorization }) => authorization === token,
    granted: { json: { jwt: token, user: { id: 1 } } },
    calls: { 'GET /slow': 'silence' },
    unknown: { json: { list: rows } },
    list,
    notes: [/`roles`/, /`logout`/, /`shape`: GET \/slow gave no data \(no response/]
  },
  'a JWT that is the whole response, and alone tells the user': {
    options: '--route /orders',
    signIn: '/login',
    isIn: ({ authorization }) => authorization === `Bearer ${jwt.join('.')}`,
    granted: { html: jwt.join('.') },
    calls: { 'GET /orders': { json: { rows, total: 57 } }, 'POST /logout': { status: 204 } },
    list: { data: rows, total: 57 },
    user: { id: '5', username: 'dora' },
    signOut: 'POST /logout',
    notes: []
  },
  'nothing that tells who the user is': {
    options: '--route /list',
    signIn: '/token',
    isIn: bearer,
    granted: { json: { access: token } },
    calls: { 'GET /list': { json: rows } },
    notes: [/Who the user is: .*nobody can sign in/, /`logout`/]
  },
  'a wrong account': {
    options: '--route /orders',
    signIn: '/login',
    refused: coded(500, null),
    out: coded(500, null),
    unknown: coded(500, null),
    notes: [/nobody could be signed in/]
  }
}

function answerOf(stranger: Stranger, call: string, seen: Seen, isIn: boolean): Answer | 'silence' {
  const { signIn, granted, refused, calls = {}, out, unknown, mustHave = () => true } = stranger
  const no = { status: 401, json: { error: 'No.' } }
  if (call.startsWith('POST') && !mustHave(seen.headers, seen)) return { ...no, status: 419 }
  if (call === `POST ${signIn}`) return (isRight(seen) ? granted : undefined) ?? refused ?? no
  const answer = calls[call] ?? unknown
  if (answer === undefined) return page404
  const isOpen = answer !== 'silence' && answer.isOpen === true
  return isIn || isOpen ? answer : (out ?? no)
}

for (const [title, stranger] of Object.entries(strangers)) {
  t.test(`a folder for a back-end with ${title}`, async t => {
    const { options, signIn, isIn, signOut, notes } = stranger
    let isOver = false
    const backend = await testUpstream(t.after, (_request, response, seen) => {
      const call = `${seen.method} ${seen.url}`
      isOver = call === signOut || (isOver && !isRight(seen))
      const answer = answerOf(stranger, call, seen, !isOver && isIn?.(seen.headers) === true)
      if (answer === 'silence') return
      const { status = 200, json, html, headers } = answer
      const type = { 'content-type': html === undefined ? 'application/json' : 'text/html' }
      response.writeHead(status, { ...type, ...headers }).end(html ?? JSON.stringify(json))
    })
    const words = ['--user', account.username, '--login-path', signIn, ...options.split(' ')]
    const init = ['--backend-url', backend.url, ...words]
    const { code, out, err, folder, everything } = await runInit(t.after, init, account.password)
    t.match({ code, err }, { code: 0, err: /^(The sign-in was refused .*\n)?$/ })
    const posts = backend.seen.filter(({ method }) => method === 'POST')
    t.match(String(posts[0]?.body), /nobody-/, 'a made-up account comes first')
    t.equal(posts.filter(({ body }) => body.includes('dora')).length, 1, 'one sign-in')
    t.ok(backend.seen.length <= 40, `${backend.seen.length} requests`)
    for (const secret of [account.password, token, 'Confidential', 'Diaz']) {
      t.notOk(everything.includes(secret), `${secret} is not written`)
    }
    const todos = out.split('\n').filter(line => line.includes('TODO'))
    t.match(todos, notes, out)
    t.equal(todos.length, notes.length, out)
    t.equal(everything.match(/# TODO/g)?.length ?? 0, notes.length, 'in the files, too')
    const gateway = await gatewayOn(t.after, folder)
    const path = publicPath(options)
    t.equal((await gateway.call(path)).status, 401)
    if (stranger.list === undefined) return
    const wrong = { ...account, password: 'wrong' }
    const refused = await gateway.call('/api/auth/admin/login', { json: wrong })
    t.match(refused, { status: 401, json: { message: stranger.message ?? String } })
    const signedIn = await signInAndGet(gateway, account, path)
    t.match(signedIn, { status: 200, list: stranger.list })
    const profile = await gateway.call('/api/account/profile', { cookie: signedIn.cookie })
    t.match(profile.json.data, stranger.user ?? {})
    if (signOut === undefined || notes.some(({ source }) => source.includes('Ended'))) return
    isOver = true
    const ended = await gateway.call(path, { cookie: signedIn.cookie })
    t.match(ended.json, { errorCode: 'session.upstream' })
  })
}

function publicPath(options: string): string {
  const [, route = ''] = /--route (\S+?)\/?(?= |$)/.exec(options) ?? []
  const path = route.replace(':', '-')
  return path.startsWith('/api/') ? path : `/api${path}`
}

t.test('of very many routes the last are not asked for, and the sign-out is sent', async t => {
  const backend = await testUpstream(t.after, (request, response, { method, url, body }) => {
    const isSignIn = url === '/auth/login' && !body.includes('nobody-')
    const value = isSignIn ? { token, user: { id: 1, role: 'x' } } : { rows }
    response.setHeader('content-type', 'application/json')
    response.statusCode = bearer(request.headers) || isSignIn || method === 'DELETE' ? 200 : 401
    response.end(JSON.stringify(value))
  })
  const routes = Array.from({ length: 60 }, (_, index) => ['--route', `/list-${index}`]).flat()
  const words = ['--login-path', '/auth/login', '--user', 'dora', ...routes]
  const ran = await runInit(t.after, ['--backend-url', backend.url, ...words], account.password)
  t.equal(ran.code, 0)
  t.match(ran.out, 'GET /list-0: rows at rows')
  t.match(ran.out, '`shape`: GET /list-59 gave no data (not asked)')
  t.equal(backend.seen.filter(({ url }) => url === '/auth/logout').length, 1)
  t.ok(backend.seen.length <= 40)
})
