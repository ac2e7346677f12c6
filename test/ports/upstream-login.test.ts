/** Sign-in, renewal and sign-out at a back-end: what it is sent, and what is made of its answers. */
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { rawUpstream, type Seen, testUpstream } from '../support/upstream.ts'
import { loginPath } from '../support/wire.ts'
import { credentialSourceContract, rightPassword } from './credential-source.ts'

type Answer = readonly [status: number, body: unknown, headers?: Record<string, string | string[]>]

const path = '/auth/login'
const user = {
  id: 'user.id',
  username: 'user.login',
  name: 'user.name',
  roles: 'user.roles',
  roleMap: { ADMINISTRATOR: 'admin' },
  profile: 'user.more'
}
const alice = {
  id: 1,
  login: 'alice',
  name: 'Alice',
  roles: ['ADMINISTRATOR', 'user'],
  more: { email: 'alice@example.com' }
}
const right = { token: 't-1', user: alice }

/** What the back-end answers, and the last request that it got. */
let answerTo: (seen: Seen) => Answer = () => [200, right]
const backend = await testUpstream(t.teardown, (_request, response, seen) => {
  const [status, body, headers = {}] = answerTo(seen)
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(typeof body === 'string' ? body : JSON.stringify(body))
})
const answers = (...answer: Answer) => void (answerTo = () => answer)
const last = () => backend.seen.at(-1)
const lastBody = () => String(last()?.body)

/** Whose users sign in at the back-end. */
const gatewayOf = async (t: Pick<Test, 'after'>, source: object = {}, upstream: object = {}) =>
  await testGateway(t.after, {
    backend: { url: backend.url, ...upstream },
    source: { path, user, ...source },
    routes: { routes: { any: {} } }
  })

const formType = 'application/x-www-form-urlencoded'
const parsed = (body: string, isForm: boolean): Record<string, unknown> =>
  isForm
    ? Object.fromEntries(new URLSearchParams(body))
    : (JSON.parse(body) as Record<string, unknown>)

for (const format of ['json', 'form']) {
  t.test(`a back-end that takes ${format}`, async t => {
    const isForm = format === 'form'
    answerTo = seen => {
      const { username, password } = parsed(String(seen.body), isForm)
      const isRight =
        username === 'alice' &&
        password === rightPassword &&
        seen.headers['content-type'] === (isForm ? formType : 'application/json')
      return isRight ? [200, right] : [isForm ? 403 : 401, { error: 'no' }]
    }
    credentialSourceContract(t, await gatewayOf(t, { format }))
  })
}

t.test('it is asked by POST, with address, request id and fixed headers', async t => {
  answers(200, right)
  const headers = { 'X-App': 'console', 'Accept': 'application/vnd.x+json' }
  const gateway = await gatewayOf(t, { headers }, { url: `${backend.url}/base` })
  const { headers: told } = await gateway.attempt('alice')
  t.match(last(), {
    method: 'POST',
    url: '/base/auth/login',
    headers: {
      'content-type': 'application/json',
      'x-forwarded-for': '127.0.0.1',
      'x-request-id': told.get('x-request-id'),
      'x-app': 'console',
      'accept': /^application\/vnd.x\+json$/,
      'cookie': undefined
    }
  })
})

t.test('a template says how the body is: nested, with constants, by names', async t => {
  const body = {
    login: {
      name: 'corp\\{username}',
      secret: '{password}',
      both: '{username}:{password}',
      list: ['{username}', 1, null]
    },
    app: 7,
    other: '{tenant}'
  }
  await (await gatewayOf(t, { body })).attempt('bob', { password: 'pw' })
  t.same(JSON.parse(lastBody()), {
    login: { name: 'corp\\bob', secret: 'pw', both: 'bob:pw', list: ['bob', 1, null] },
    app: 7,
    other: '{tenant}'
  })
})

t.test('what is typed is data, and what else is typed replaces nothing', async t => {
  const typed = ['$&', "$1$`$'", '{username}', '{password}', '"}, "admin": true, {"', '</x>']
  typed.push('&admin=true&', '%26', 'a+b c', '\\', '\u0000\r\n', '__proto__')
  const fields = { username: 'login', password: 'secret' }
  const given = { login: 'alice', secret: rightPassword, username: 'mallory', password: 'guess' }
  const extra = { captcha: 'x1', nested: { a: [1] } }
  const console = async (source: object) =>
    await testGateway(t.after, {
      gateway: { login: { fields } },
      backend: backend.url,
      source: { path, user, ...source }
    })
  for (const format of ['json', 'form']) {
    const isForm = format === 'form'
    const { call } = await console({ format })
    for (const login of typed) {
      const secret = `${login}!`
      await call(loginPath, { json: { login, secret } })
      t.same(
        parsed(lastBody(), isForm),
        { username: login, password: secret },
        `${format} ${login}`
      )
    }
    await call(loginPath, { json: { ...given, ...extra } })
    t.same(parsed(lastBody(), isForm), {
      captcha: 'x1',
      nested: isForm ? '{"a":[1]}' : { a: [1] },
      username: 'alice',
      password: rightPassword
    })
    t.equal(lastBody().split('username').length, 2, 'once')
  }
  await (await console({ passExtra: false })).call(loginPath, { json: { ...given, ...extra } })
  t.same(JSON.parse(lastBody()), { username: 'alice', password: rightPassword })
})

t.test('the token and the cookies that config names are kept, and no other', async t => {
  const others = ['tracker=1', 'SID=upper', 'sidx=1', 'sid', '=sid']
  const set = ['sid=abc; Path=/; HttpOnly', 'csrf=d=e', ...others]
  for (const [token, source, credential, kept] of [
    ['t-1', { token: 'token' }, 'bearer', { authorization: 'Bearer t-1' }],
    [12, { token: 'token' }, 'bearer', { authorization: 'Bearer 12' }],
    ['t-1', { cookies: ['sid', 'csrf'] }, 'cookies', { cookie: 'sid=abc; csrf=d=e' }]
  ] as const) {
    answers(200, { ...right, token }, { 'set-cookie': set })
    const { signIn, call } = await gatewayOf(t, source, { credential })
    await call('/api/any', { cookie: await signIn() })
    t.match(last()?.headers, { authorization: undefined, cookie: undefined, ...kept })
  }
})

t.test('what is told of the user: roles in the console’s words, else what was typed', async t => {
  const roleMap = { ADMINISTRATOR: 'admin', 7: 'user' }
  const { signIn, call } = await gatewayOf(t, { user: { ...user, roleMap } })
  const born = ['constructor', '__proto__', 'toString']
  for (const [roles, expected] of [
    [
      ['ADMINISTRATOR', 'clerk'],
      ['admin', 'clerk']
    ],
    ['ADMINISTRATOR', ['admin']],
    [
      [7, 8],
      ['user', '8']
    ],
    [born, born],
    ...[null, undefined, [], {}, [null, {}, '', true]].map(none => [none, []])
  ]) {
    answers(200, { user: { id: 'u1', roles, more: ['no object'] } })
    const { json } = await call('/api/session', { cookie: await signIn('typed') })
    const told = { id: 'u1', username: 'typed', name: 'typed' }
    t.match(json.data, { user: told, roles: expected })
  }
})

const coded = {
  outcomes: [
    { is: 'success', path: 'code', in: [0] },
    { is: 'refused', path: 'code', in: [1001] }
  ]
}
const both = {
  outcomes: [
    { is: 'refused', status: [200], path: 'error' },
    { is: 'success', status: [200], path: 'user.id' }
  ]
}
const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
const noIds = [null, { id: null }, { id: '' }, { id: { $oid: 'x' } }].map(user => ({ user }))
const noTokens = ['a\r\nx-user-roles: admin', 'a\nb', 'ü', '\u0000', null, '', {}, ['t'], true]

type Rows = ReadonlyArray<readonly [body: unknown, status?: number]>

/** Config, and answers that are the back-end’s fault, and no refusal. */
const faulty: Record<string, readonly [source: object, rows: Rows]> = {
  'no id: whose session would it be?': [{}, [{}, ...noIds, [], null, 'text'].map(body => [body])],
  'a token that is missing, or that no header can hold': [
    { token: 'token' },
    noTokens.map(token => [{ ...right, token }])
  ],
  'a status that is neither success nor refusal': [
    {},
    [202, 204, 302, 418, 500, 502, 503].map(status => [status === 204 ? '' : right, status])
  ],
  'a code that is neither': [
    coded,
    [{ code: 9999 }, { code: '0' }, { code: null }, {}, [], null].map(body => [body])
  ],
  'no outcome that fits': [both, [[{ error: 'x' }, 500]]],
  'no JSON, more than a sign-in says, a profile that no session could hold': [
    {},
    [
      ['<h1>maintenance</h1>'],
      [{ ...right, filler: 'x'.repeat(300 * 1024) }],
      [`{"user":{"id":"u1","more":{"deep":${deep}}}}`]
    ]
  ]
}
for (const [title, [source, rows]] of Object.entries(faulty)) {
  t.test(`the back-end’s fault: ${title}`, async t => {
    const { attempt } = await gatewayOf(t, source)
    for (const [body, status = 200] of rows) {
      answers(status, body)
      const isInvalid = { status: 502, json: { errorCode: 'upstream.invalid' } }
      const what = `${status} ${JSON.stringify(body).slice(0, 60)}`
      t.match(await attempt('alice'), isInvalid, what)
    }
  })
}

t.test('of outcomes the first counts, of which all conditions fit', async t => {
  const { attempt } = await gatewayOf(t, both)
  for (const [error, status] of [
    ['locked', 401],
    [undefined, 200],
    [false, 200]
  ] as const) {
    answers(200, { ...right, error })
    t.match(await attempt('alice'), { status }, String(error))
  }
})

t.test('a back-end that is down, breaks off or trickles is asked once', async t => {
  const reset = await rawUpstream(t.after, socket => socket.resetAndDestroy())
  // Byte by byte, and it never comes to an end.
  const trickling = await rawUpstream(t.after, socket => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n')
    const timer = setInterval(() => socket.write(' '), 20)
    socket.on('close', () => clearInterval(timer))
  })
  for (const [url, code, status] of [
    [`http://127.0.0.1:${await freePort()}`, 'refused', 502],
    [reset.url, 'reset', 502],
    [trickling.url, 'timeout.total', 504]
  ] as const) {
    const { attempt, log } = await gatewayOf(t, {}, { url })
    const answer = await attempt('alice', { password: 'hunter2' })
    t.match(answer, { status, json: { errorCode: `upstream.${code}` } })
    t.notMatch(answer.text, '127.0.0.1')
    t.notMatch(JSON.stringify(log), 'hunter2')
  }
  t.equal(reset.requests(), 1)
})

/** Signed in, with a token that is to be renewed before the first request. */
const signedIn = { ...right, code: 0, refreshToken: 'r&=1', expiresIn: 0 }
const kept = { token: 'token', refreshToken: 'refreshToken', cookies: ['sid'] }
const renewed = (more: object) => ({
  expires: { path: 'expiresIn' },
  refresh: { path: '/refresh', token: 'token', ...more }
})
const out = { path: '/out' }

/** A renewal or a sign-out: config, the request, its body, and the upstream's way with tokens. */
const calls: Record<string, readonly [source: object, sent: object, body: string, as?: unknown]> = {
  'a renewal by the query, as yudao takes it': [
    renewed({ query: { refreshToken: '{refreshToken}', fixed: 'a b' } }),
    { method: 'POST', url: '/refresh?refreshToken=r%26%3D1&fixed=a+b' },
    '{}'
  ],
  'a renewal by a body that must not come with the expired token, as Directus': [
    renewed({ sendCredential: false, body: { token: '{refreshToken}', n: 1 } }),
    { headers: { authorization: undefined, cookie: undefined } },
    '{"token":"r&=1","n":1}'
  ],
  'a renewal by a form': [
    renewed({ format: 'form', body: { refresh: '{refreshToken}' } }),
    { headers: { 'content-type': formType } },
    'refresh=r%26%3D1'
  ],
  'a renewal by a header': [
    renewed({ method: 'GET', headers: { 'X-Refresh': 'R {refreshToken}' } }),
    { method: 'GET', headers: { 'x-refresh': 'R r&=1' } },
    ''
  ],
  'a sign-out with a body': [
    { logout: { ...out, body: { refresh: '{refreshToken}', of: '{token}', other: '{id}' } } },
    { url: '/out', headers: { 'content-type': 'application/json' } },
    '{"refresh":"r&=1","of":"t-1","other":"{id}"}'
  ],
  'a sign-out by a form (RFC 7009, Keycloak) with a client of its own': [
    {
      logout: { ...out, format: 'form', headers: { a: 'A {token}' }, body: { t: '{refreshToken}' } }
    },
    { headers: { 'content-type': formType, 'a': 'A t-1' } },
    't=r%26%3D1'
  ],
  'a token and cookies': [
    { logout: { ...out, method: 'DELETE' } },
    {
      method: 'DELETE',
      headers: { 'authorization': 'Bearer t-1', 'cookie': 'sid=abc', 'x-token': undefined }
    },
    ''
  ],
  'a token alone': [
    { logout: { ...out, method: 'GET' } },
    { headers: { authorization: 'Bearer t-1' } },
    '',
    'none'
  ],
  'a token’s word is the one that the upstream wants, as DRF’s Token': [
    { logout: out },
    { headers: { authorization: 'Token t-1' } },
    '',
    { as: 'bearer', scheme: 'Token' }
  ],
  'a token in a header has the word that config names': [
    { logout: out },
    { headers: { 'x-token': 'JWT t-1', 'cookie': 'sid=abc', 'authorization': undefined } },
    '',
    { as: 'header:x-token', scheme: 'JWT' }
  ]
}

for (const [name, [source, sent, body, credential = 'bearer']] of Object.entries(calls)) {
  t.test(name, async t => {
    answerTo = ({ url }) => {
      const cookies = { 'set-cookie': 'sid=abc' }
      return url === path ? [200, signedIn, cookies] : [200, { token: 'new' }]
    }
    const { signIn, call } = await gatewayOf(t, { ...kept, ...source }, { credential })
    const cookie = await signIn()
    const from = backend.seen.length
    await call('refresh' in source ? '/api/any' : '/api/account/logout', { cookie })
    await until('the back-end is asked', () => backend.seen.length > from)
    t.match(backend.seen[from], sent)
    t.equal(String(backend.seen[from]?.body), body)
  })
}

t.test('a refresh token that no header can hold is not sent', async t => {
  answers(200, { ...signedIn, refreshToken: 'a\r\nx-user-id: 1' })
  const headers = { 'x-refresh': '{refreshToken}' }
  const source = { ...kept, ...renewed({ headers }) }
  const { signIn, call } = await gatewayOf(t, source, { credential: 'bearer' })
  const cookie = await signIn()
  const from = backend.seen.length
  const invalid = { status: 502, json: { errorCode: 'upstream.invalid' } }
  t.match(await call('/api/any', { cookie }), invalid)
  t.equal(backend.seen.length, from)
})

t.test('a sign-out that was not taken is told, a renewal may be refused', async t => {
  const refused = { path: 'code', in: [401] }
  const source = { ...kept, ...coded, logout: out, ...renewed({ refused }) }
  const { signIn, call, log, logged } = await gatewayOf(t, source, { credential: 'bearer' })
  for (const status of [401, 404, 500]) {
    answerTo = ({ url }) => (url === path ? [200, signedIn] : [status, {}])
    const from = log.length
    await call('/api/account/logout', { cookie: await signIn() })
    t.match(await logged(({ event }) => event === 'logout.source', from), { level: 'warn' })
  }
  answerTo = ({ url }) => [200, url === path ? signedIn : { code: 401 }]
  const ended = { status: 401, json: { errorCode: 'session.upstream' } }
  t.match(await call('/api/any', { cookie: await signIn() }), ended)
})
