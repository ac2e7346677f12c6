/** `init` against back-ends of no known family: the folder starts, and says what is left to do. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { rawNumber } from '../../../src/json/values.ts'
import { gatewayOn, runInit, signInAndGet } from '../../support/init.ts'
import { type Seen, testUpstream } from '../../support/upstream.ts'

const account = { username: 'dora', password: 'pass-Phrase 7' }
const token = 'tok-0123456789abcdef'
const rows = [{ id: 7, title: 'Confidential' }]

interface Answer {
  readonly status?: number
  readonly json?: unknown
  readonly html?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A back-end: what it answers by `METHOD /path`; undefined for silence. */
interface Stranger {
  readonly words: readonly string[]
  /** Whether a request carries the credential. */
  readonly isIn: (seen: Seen) => boolean
  readonly answer: (call: string, seen: Seen, isIn: boolean) => Answer | undefined
  readonly list?: object
  /** Of the profile. */
  readonly user?: object
  /** The call that ends the session. */
  readonly signOut?: string
  /** What is left to do. */
  readonly notes: readonly RegExp[]
}

const isRight = ({ body }: Seen) => body.includes(account.username) && body.includes('Phrase')
const page404 = { status: 404, html: '<h1>Not found</h1>' }

const strangers: Readonly<Record<string, Stranger>> = {
  'a token in a header of its own, 419, sign-out by DELETE': {
    words: [
      '--login-path',
      '/v1/session',
      '--login-fields',
      'user,pass',
      '--route',
      '/v1/orders',
      '--token-header',
      'X-Api-Token'
    ],
    isIn: ({ headers }) => headers['x-api-token'] === token,
    answer: (call, seen, isIn) => {
      const refuse = (status: number) => ({ status, json: { err: { id: 'E1', text: 'No.' } } })
      if (call === 'POST /v1/session') {
        return isRight(seen) ? { status: 201, json: { token, expiresIn: 3600 } } : refuse(403)
      }
      if (!isIn) return refuse(419)
      if (call === 'GET /v1/me') return { json: { userId: 5, login: 'dora', role: 'clerk' } }
      return call.startsWith('GET /v1/orders') ? { json: { rows, count: 57 } } : refuse(404)
    },
    list: { data: rows, total: 57 },
    user: { id: '5', username: 'dora' },
    signOut: 'DELETE /v1/session',
    notes: []
  },
  'a session cookie, pages for what is not there, and a user call of its own': {
    words: ['--login-path', '/enter', '--user-path', '/whoami', '--route', '/list'],
    isIn: ({ headers }) => headers.cookie === `sid=${token}`,
    answer: (call, seen, isIn) => {
      if (call === 'POST /enter') {
        const cookie = { 'set-cookie': `sid=${token}; Path=/; HttpOnly` }
        return isRight(seen) ? { status: 204, headers: cookie } : { status: 401, html: 'No.' }
      }
      if (!['GET /list', 'GET /whoami'].includes(call)) return page404
      if (!isIn) return { status: 401, html: 'Sign in.' }
      return { json: call === 'GET /list' ? rows : { name: 'dora', uid: 'u-5' } }
    },
    list: { data: rows, total: 1 },
    user: { id: 'u-5' },
    notes: [/`roles`/, /`logout`/]
  },
  'the token in a header of the response': {
    words: ['--login-path', '/auth/login', '--route', '/items'],
    isIn: ({ headers }) => headers.authorization === `Bearer ${token}`,
    answer: (call, seen, isIn) => {
      if (call === 'POST /auth/login') {
        const user = { id: 5, username: 'dora', fullName: 'Dora Diaz', roles: ['admin'] }
        const headers = { authorization: `Bearer ${token}` }
        return isRight(seen) ? { json: user, headers } : { status: 401, json: { message: 'No.' } }
      }
      if (call === 'POST /auth/logout') return { status: 204 }
      return isIn ? { json: { data: { items: rows, totalCount: 9 } } } : { status: 401, json: {} }
    },
    list: { data: rows, total: 9 },
    user: { id: '5', name: 'Dora Diaz' },
    signOut: 'POST /auth/logout',
    notes: []
  },
  'a form, the scheme Token, and the user at /users/me': {
    words: ['--login-path', '/api-token/', '--login-format', 'form', '--route', '/api/things/'],
    isIn: ({ headers }) => headers.authorization === `Token ${token}`,
    answer: (call, seen, isIn) => {
      if (call === 'POST /api-token/') {
        const isForm = seen.headers['content-type'] === 'application/x-www-form-urlencoded'
        const form = new URLSearchParams(seen.body.toString())
        const isKnown = isForm && form.get('password') === account.password
        return isKnown ? { json: { token } } : { status: 400, json: { non_field_errors: ['No.'] } }
      }
      if (!isIn) return { status: 401, json: { detail: 'Sign in.' } }
      if (call === 'GET /users/me/') {
        return { json: { pk: 5, email: 'd@x.example', username: 'dora' } }
      }
      return call === 'GET /api/things/' ? { json: { results: rows, count: 3 } } : page404
    },
    list: { data: rows, total: 3 },
    user: { id: '5' },
    notes: [/`roles`/, /`logout`/]
  },
  'status 200 for wrong passwords, and an id that no double holds': {
    words: ['--login-path', '/login', '--route', '/news'],
    isIn: ({ headers }) => headers.authorization === `Bearer ${token}`,
    answer: (call, seen, isIn) => {
      const of = (code: number, data: unknown) => ({ json: { code, msg: 'text', data } })
      if (call === 'POST /login') {
        const user = rawNumber('9007199254740993')
        const data = { accessToken: token, user: { uid: user, userName: 'dora', roleKey: 'boss' } }
        return isRight(seen) ? of(0, data) : of(1001, null)
      }
      if (!isIn) return of(4010, null)
      return of(0, call.startsWith('GET /news') ? { rows: { list: rows, total: 57 } } : null)
    },
    list: { data: rows, total: 57 },
    user: { id: '9007199254740993' },
    notes: [/`logout`/]
  },
  'a list that does not answer': {
    words: ['--login-path', '/login', '--route', '/fast', '--route', '/slow'],
    isIn: ({ headers }) => headers.authorization === token,
    answer: (call, seen, isIn) => {
      if (call === 'POST /login') {
        return isRight(seen) ? { json: { jwt: token, user: { id: 1 } } } : { status: 401 }
      }
      if (call === 'GET /slow' && isIn) return undefined
      return isIn ? { json: { list: rows } } : { status: 401, json: { error: 'No.' } }
    },
    list: { data: rows, total: 1 },
    notes: [/`roles`/, /`shape`: GET \/slow gave no data \(no response/, /`logout`/]
  },
  'nothing that tells who the user is': {
    words: ['--login-path', '/token', '--route', '/list'],
    isIn: ({ headers }) => headers.authorization === `Bearer ${token}`,
    answer: (call, seen, isIn) => {
      if (call === 'POST /token') {
        return isRight(seen) ? { json: { access: token } } : { status: 401 }
      }
      if (call !== 'GET /list') return page404
      return isIn ? { json: rows } : { status: 401, json: {} }
    },
    notes: [/Who the user is: .*nobody can sign in/, /`logout`/]
  },
  'a single endpoint for everything': {
    words: ['--login-path', '/graphql', '--route', '/orders'],
    isIn: () => false,
    answer: call =>
      call === 'POST /graphql'
        ? { status: 400, json: { errors: [{ message: 'Syntax' }] } }
        : page404,
    notes: [/nobody could be signed in/]
  },
  'a wrong account': {
    words: ['--login-path', '/login', '--route', '/orders'],
    isIn: () => false,
    answer: () => ({ json: { code: 500, msg: 'No.' } }),
    notes: [/nobody could be signed in/]
  }
}

for (const [title, stranger] of Object.entries(strangers)) {
  t.test(`a folder for a back-end with ${title}`, async t => {
    const { words, isIn, answer, list, user, signOut, notes } = stranger
    let isOver = false
    const backend = await testUpstream(t.after, (_request, response, seen) => {
      const call = `${seen.method} ${new URL(seen.url, 'http://back-end').pathname}`
      isOver = call === signOut || (isOver && !isRight(seen))
      const given = answer(call, seen, isIn(seen) && !isOver)
      if (given === undefined) return
      const { status = 200, json, html, headers } = given
      const type = { 'content-type': html === undefined ? 'application/json' : 'text/html' }
      response.writeHead(status, { ...type, ...headers }).end(html ?? JSON.stringify(json))
    })
    const told = ['--backend-url', backend.url, '--user', account.username, ...words]
    const { code, out, err, folder, everything } = await runInit(t.after, told, account.password)
    t.comment(out)
    t.match({ code, err }, { code: 0, err: /^(The sign-in was refused .*\n)?$/ })
    const posts = backend.seen.filter(({ method }) => method === 'POST')
    t.match(String(posts[0]?.body), /nobody-/, 'a made-up account comes first')
    t.equal(posts.filter(({ body }) => body.includes('dora')).length, 1, 'one sign-in')
    t.ok(backend.seen.length <= 40, `${backend.seen.length} requests`)
    for (const secret of [account.password, token, 'Confidential', 'Diaz']) {
      t.notOk(everything.includes(secret), `${secret} is not written`)
    }
    const todos = out.split('\n').filter(line => line.includes('TODO'))
    t.match(todos, notes)
    t.equal(todos.length, notes.length)
    const files = ['gateway.yaml', 'routes.yaml'].map(name =>
      readFileSync(join(folder, name), 'utf8')
    )
    t.equal(files.join().match(/# TODO/g)?.length ?? 0, notes.length)
    const gateway = await gatewayOn(t.after, folder)
    t.equal((await gateway.call(publicPath(words))).status, 401)
    if (list === undefined) return
    const signedIn = await signInAndGet(gateway, account, publicPath(words))
    t.match(signedIn, { status: 200, list })
    const profile = await gateway.call('/api/account/profile', { cookie: signedIn.cookie })
    t.match(profile.json.data, user ?? {})
  })
}

function publicPath(words: readonly string[]): string {
  const path = (words[words.indexOf('--route') + 1] ?? '').replace(/\/$/, '')
  return path.startsWith('/api/') ? path : `/api${path}`
}

t.test('of very many routes the last are not asked for, and the sign-out is sent', async t => {
  const backend = await testUpstream(t.after, (request, response, { method, url, body }) => {
    const isIn = request.headers.authorization === `Bearer ${token}`
    const isSignIn = url === '/auth/login' && !body.includes('nobody-')
    const value = isSignIn ? { token, user: { id: 1, role: 'x' } } : { rows }
    response.setHeader('content-type', 'application/json')
    response.statusCode = isIn || isSignIn || method === 'DELETE' ? 200 : 401
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
