/** Sign-in, renewal and sign-out at a back-end: what it is sent, and what is made of its answers. */
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { loadConfig } from '../../src/config/read/load.ts'
import type { UpstreamConfig } from '../../src/config/schema/routes.ts'
import type { UpstreamLoginConfig } from '../../src/config/schema/upstream-login.ts'
import { createUpstreamLogin } from '../../src/login/upstream-login.ts'
import { createUpstream } from '../../src/proxy/upstream.ts'
import type { Credential, Session } from '../../src/session/types.ts'
import { textFolder } from '../support/config-files.ts'
import { freePort } from '../support/ports.ts'
import { newSession } from '../support/sessions.ts'
import { signInAtBackend } from '../support/sign-in.ts'
import { rawUpstream, type Seen, testUpstream } from '../support/upstream.ts'
import { attempt, credentialSourceContract, rightPassword } from './credential-source.ts'

type Over = Partial<UpstreamLoginConfig>
type Answer = readonly [status: number, body: unknown, headers?: Record<string, string | string[]>]

/** Config with all defaults, as the gateway reads it. */
function read(backEnd: object, source: object = {}) {
  const files = {
    'gateway.yaml': stringify({ login: signInAtBackend(source) }),
    'routes.yaml': stringify({ upstreams: { b: backEnd } })
  }
  const config = loadConfig(textFolder(t.after, files), {})
  return {
    source: config.gateway.login.sources['b'] as UpstreamLoginConfig,
    upstream: config.routes.upstreams['b'] as UpstreamConfig
  }
}

const { source: base } = read(
  { url: 'http://127.0.0.1:1' },
  {
    path: '/auth/login',
    user: {
      id: 'user.id',
      username: 'user.login',
      name: 'user.name',
      roles: 'user.roles',
      roleMap: { ADMINISTRATOR: 'admin' },
      profile: 'user.more'
    }
  }
)
const credential: Credential = { token: 't-1', refreshToken: 'r&=1', cookies: 'sid=abc' }
const sessionWith = (held?: Credential): Session => ({
  ...newSession('1', held && { credential: held }),
  id: 's',
  createdAt: 0,
  idleMs: 1
})

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
const backend = await testUpstream(t.after, (_request, response, seen) => {
  const [status, body, headers = {}] = answerTo(seen)
  response
    .writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(typeof body === 'string' ? body : JSON.stringify(body))
})
const answers = (...answer: Answer) => void (answerTo = () => answer)
const last = () => backend.seen.at(-1)
const lastBody = () => String(last()?.body)

interface Form {
  readonly url?: string
  /** Of the upstream. */
  readonly credential?: unknown
  /** No call waits longer. */
  readonly maxMs?: number
  /** Gets how long each call would wait. */
  readonly waits?: number[]
}

/** The source in front of a back-end, over the gateway's own way there. */
function sourceOf(t: Test, over: Over = {}, form: Form = {}) {
  const { url = backend.url, credential: written = 'bearer', maxMs = Infinity, waits = [] } = form
  const times = { connectTimeout: '30s', responseTimeout: '30s' }
  const upstream = createUpstream(read({ url, ...times, credential: written }).upstream)
  t.after(() => upstream.close())
  return createUpstreamLogin({
    name: 'backend',
    config: { ...base, ...over },
    backEnd: {
      ...upstream,
      send: call => {
        waits.push(call.timeoutMs)
        const timeoutMs = Math.min(call.timeoutMs, maxMs)
        return upstream.send({ ...call, timeoutMs, totalMs: timeoutMs })
      }
    }
  })
}

const formType = 'application/x-www-form-urlencoded'
const parsed = (body: string, isForm: boolean): Record<string, unknown> =>
  isForm
    ? Object.fromEntries(new URLSearchParams(body))
    : (JSON.parse(body) as Record<string, unknown>)

interface BackEnd {
  readonly over?: Over
  readonly right?: Answer
  readonly wrong?: Answer
  /** To a call that is no sign-in. */
  readonly other?: (seen: Seen) => Answer
}

const backEnds: Record<string, BackEnd> = {
  'a back-end that speaks JSON': {},
  'a back-end that takes forms': { over: { format: 'form' }, wrong: [403, {}] },
  'a back-end that says 200 to everything and the truth in a code': {
    over: {
      outcomes: [
        { is: 'refused', path: 'code', in: [1001, 1002] },
        { is: 'success', path: 'code', in: [0] }
      ]
    },
    right: [200, { code: 0, ...right }],
    wrong: [200, { code: 1001, msg: 'bad credentials' }]
  },
  'a back-end that tells the user in a second call': {
    over: {
      token: 'token',
      user: {
        ...base.user,
        from: { path: '/me', method: 'GET', query: {}, success: { status: [200] } }
      }
    },
    right: [200, { token: 't-1' }],
    other: ({ headers }) => (headers.authorization === 'Bearer t-1' ? [200, right] : [401, {}])
  }
}

for (const [name, { over = {}, other, ...told }] of Object.entries(backEnds)) {
  t.test(name, async t => {
    const isForm = over.format === 'form'
    answerTo = seen => {
      if (seen.url !== base.path) return other?.(seen) ?? [404, {}]
      const { username, password } = parsed(String(seen.body), isForm)
      const isRight =
        username === 'alice' &&
        password === rightPassword &&
        seen.headers['content-type'] === (isForm ? formType : 'application/json')
      return isRight ? (told.right ?? [200, right]) : (told.wrong ?? [401, { error: 'no' }])
    }
    credentialSourceContract(t, sourceOf(t, over))
  })
}

t.test('it is asked by POST, with address, request id and fixed headers', async t => {
  answers(200, right)
  const headers = { 'X-App': 'console', 'Accept': 'application/vnd.x+json' }
  await sourceOf(t, { headers }, { url: `${backend.url}/base` }).verify(attempt())
  t.match(last(), {
    method: 'POST',
    url: '/base/auth/login',
    headers: {
      'content-type': 'application/json',
      'x-forwarded-for': '192.0.2.7',
      'x-request-id': 'req-1',
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
  await sourceOf(t, { body }).verify(attempt({ username: 'bob', password: 'pw' }))
  t.same(JSON.parse(lastBody()), {
    login: { name: 'corp\\bob', secret: 'pw', both: 'bob:pw', list: ['bob', 1, null] },
    app: 7,
    other: '{tenant}'
  })
})

t.test('what is typed is data, and what else is typed replaces nothing', async t => {
  const typed = ['$&', "$1$`$'", '{username}', '{password}', '"}, "admin": true, {"', '</x>']
  typed.push('&admin=true&', '%26', 'a+b c', '\\', '\u0000\r\n', '__proto__')
  const extra = JSON.parse(
    '{"captcha": "x1", "autoLogin": true, "nested": {"a": [1]}, "username": "mallory", "password": "guess", "__proto__": {"admin": true}}'
  ) as Record<string, unknown>
  for (const format of ['json', 'form'] as const) {
    const isForm = format === 'form'
    const source = sourceOf(t, { format })
    for (const username of typed) {
      const password = `${username}!`
      await source.verify(attempt({ username, password }))
      t.same(parsed(lastBody(), isForm), { username, password }, `${format} ${username}`)
    }
    await source.verify(attempt({ extra }))
    t.match(parsed(lastBody(), isForm), {
      captcha: 'x1',
      autoLogin: isForm ? 'true' : true,
      nested: isForm ? '{"a":[1]}' : { a: [1] },
      username: 'alice',
      password: rightPassword
    })
    t.equal(lastBody().split('username').length, 2, 'once')
  }
  await sourceOf(t, { passExtra: false }).verify(attempt({ extra }))
  t.same(JSON.parse(lastBody()), { username: 'alice', password: rightPassword })
})

t.test('the token and the cookies that config names are kept, and no other', async t => {
  const others = ['tracker=1', 'SID=upper', 'sidx=1', 'sid', '=sid']
  const set = ['sid=abc; Path=/; HttpOnly', 'csrf=d=e', ...others]
  for (const [token, over, kept] of [
    [
      't-1',
      { token: 'token', cookies: ['sid', 'csrf'] },
      { token: 't-1', cookies: 'sid=abc; csrf=d=e' }
    ],
    [12, { token: 'token' }, { token: '12' }],
    ['t-1', {}, {}]
  ] as const) {
    answers(200, { ...right, token }, { 'set-cookie': set })
    const verdict = await sourceOf(t, over as Over).verify(attempt())
    t.same((verdict as { credential?: unknown }).credential, kept)
  }
})

t.test('what is told of the user: roles in the console’s words, else what was typed', async t => {
  const user = { ...base.user, roleMap: { ADMINISTRATOR: 'admin', 7: 'user' } }
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
    t.match(await sourceOf(t, { user }).verify(attempt({ username: 'typed' })), {
      identity: { id: 'u1', username: 'typed', name: 'typed', roles: expected, profile: {} }
    })
  }
})

const coded: Over = {
  outcomes: [
    { is: 'success', path: 'code', in: [0] },
    { is: 'refused', path: 'code', in: [1001] }
  ]
}
const both: Over = {
  outcomes: [
    { is: 'refused', status: [200], path: 'error' },
    { is: 'success', status: [200], path: 'user.id' }
  ]
}
const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`
const noIds = [null, { id: null }, { id: '' }, { id: { $oid: 'x' } }].map(user => ({ user }))
const noTokens = ['a\r\nx-user-roles: admin', 'a\nb', 'ü', '\u0000', null, '', {}, ['t'], true]

/** Answers that are the back-end's fault, and no refusal. */
const faulty: Record<
  string,
  ReadonlyArray<readonly [body: unknown, status?: number, over?: Over]>
> = {
  'no id: whose session would it be?': [{}, ...noIds, [], null, 'text', { 'user.id': 1 }].map(
    body => [body]
  ),
  'a token that is missing, or that no header can hold': noTokens.map(token => {
    return [{ ...right, token }, 200, { token: 'token' }]
  }),
  'a status that is neither success nor refusal': [202, 204, 302, 418, 500, 502, 503].map(
    status => {
      return [status === 204 ? '' : right, status]
    }
  ),
  'a code that is neither': [{ code: 9999 }, { code: '0' }, { code: null }, {}, [], null].map(
    body => [body, 200, coded]
  ),
  'no outcome that fits': [[{ error: 'x' }, 500, both]],
  'no JSON': [['<h1>maintenance</h1>']],
  'more than a sign-in says': [[{ ...right, filler: 'x'.repeat(300 * 1024) }]],
  'a profile that no session could hold': [[`{"user":{"id":"u1","more":{"deep":${deep}}}}`]]
}
for (const [title, rows] of Object.entries(faulty)) {
  t.test(`the back-end’s fault: ${title}`, async t => {
    for (const [body, status = 200, over] of rows) {
      answers(status, body)
      const isInvalid = { code: 'upstream.invalid', status: 502 }
      const what = `${status} ${JSON.stringify(body).slice(0, 60)}`
      await t.rejects(sourceOf(t, over).verify(attempt()), isInvalid, what)
    }
  })
}

t.test('of outcomes the first counts, of which all conditions fit', async t => {
  for (const [error, vouched] of [
    ['locked', false],
    [undefined, true],
    [false, true]
  ] as const) {
    answers(200, { ...right, error })
    t.match(await sourceOf(t, both).verify(attempt()), { vouched }, String(error))
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
  const waits: number[] = []
  const over = { logout: { path: '/logout', method: 'POST', sendCredential: true } } as const
  for (const [url, code, status] of [
    [`http://127.0.0.1:${await freePort()}`, 'refused', 502],
    [reset.url, 'reset', 502],
    [trickling.url, 'timeout.total', 504]
  ] as const) {
    const source = sourceOf(t, over, { url, waits, maxMs: status === 504 ? 150 : Infinity })
    const error = await source
      .verify(attempt({ password: 'hunter2' }))
      .catch((thrown: Error) => thrown)
    t.match(error, { code: `upstream.${code}`, status })
    const { message, cause } = error as Error
    t.notMatch(`${message} ${String((cause as Error | undefined)?.message)}`, 'hunter2')
    t.notMatch(message, '127.0.0.1')
    await t.rejects(async () => await source.signOut?.(sessionWith(credential)))
  }
  t.same(new Set(waits), new Set([10_000, 5000]))
  t.equal(reset.requests(), 2, 'one sign-in, one sign-out')
})

const posted = { method: 'POST', sendCredential: true } as const
const empty = { format: 'json', body: {}, query: {}, headers: {} } as const
const refresh = { ...posted, ...empty, path: '/refresh', token: 'token' } as const
const out = { ...posted, path: '/out' } as const
const get = { ...out, method: 'GET' } as const

/** A renewal or a sign-out: config, the request, its body, and the upstream's way with tokens. */
const calls: Record<string, [Over, sent: object, body: string, Form?]> = {
  'a renewal by the query, as yudao takes it': [
    { refresh: { ...refresh, query: { refreshToken: '{refreshToken}', fixed: 'a b' } } },
    { method: 'POST', url: '/refresh?refreshToken=r%26%3D1&fixed=a+b' },
    '{}'
  ],
  'a renewal by a body that must not come with the expired token, as Directus': [
    { refresh: { ...refresh, sendCredential: false, body: { token: '{refreshToken}', n: 1 } } },
    { headers: { authorization: undefined, cookie: undefined } },
    '{"token":"r&=1","n":1}'
  ],
  'a renewal by a form': [
    { refresh: { ...refresh, format: 'form', body: { refresh: '{refreshToken}' } } },
    { headers: { 'content-type': formType } },
    'refresh=r%26%3D1'
  ],
  'a renewal by a header': [
    { refresh: { ...refresh, method: 'GET', headers: { 'X-Refresh': 'R {refreshToken}' } } },
    { method: 'GET', headers: { 'x-refresh': 'R r&=1' } },
    ''
  ],
  'a sign-out with a body': [
    { logout: { ...out, body: { refresh: '{refreshToken}', of: '{token}', other: '{id}' } } },
    { url: '/out', headers: { 'content-type': 'application/json' } },
    '{"refresh":"r&=1","of":"t-1","other":"{id}"}'
  ],
  'a token and cookies': [
    { logout: out },
    { headers: { 'authorization': 'Bearer t-1', 'cookie': 'sid=abc', 'x-token': undefined } },
    ''
  ],
  'a token alone': [
    { logout: get },
    { headers: { authorization: 'Bearer t-1' } },
    '',
    { credential: 'none' }
  ],
  'cookies alone': [
    { logout: { ...out, method: 'DELETE' } },
    { method: 'DELETE', headers: { cookie: 'sid=abc', authorization: undefined } },
    '',
    { credential: 'cookies' }
  ],
  'a token’s word is the one that the upstream wants, as DRF’s Token': [
    { logout: out },
    { headers: { authorization: 'Token t-1' } },
    '',
    { credential: { as: 'bearer', scheme: 'Token' } }
  ],
  'a token in a header has the word that config names': [
    { logout: out },
    { headers: { 'x-token': 'JWT t-1', 'cookie': 'sid=abc', 'authorization': undefined } },
    '',
    { credential: { as: 'header:x-token', scheme: 'JWT' } }
  ]
}
const call = async (
  t: Test,
  over: Over,
  form: Form = {},
  held: Credential | undefined = credential
) => {
  const source = sourceOf(t, over, form)
  const session = sessionWith(held)
  if (over.refresh !== undefined) return await source.renew?.(session)
  await source.signOut?.(session)
  return undefined
}

for (const [name, [over, sent, body, form]] of Object.entries(calls)) {
  t.test(name, async t => {
    answers(200, { token: 'new' })
    await call(t, over, form)
    t.match(last(), sent)
    t.equal(lastBody(), body)
  })
}

t.test('nobody is asked without a way, a credential or a sound token', async t => {
  const before = backend.seen.length
  await call(t, {})
  await sourceOf(t, { logout: out }).signOut?.(sessionWith())
  const headers = { 'x-refresh': '{refreshToken}' }
  const bad = { token: 't', refreshToken: 'a\r\nx-user-id: 1' }
  await t.rejects(call(t, { refresh: { ...refresh, headers } }, {}, bad), {
    code: 'upstream.invalid'
  })
  t.equal(backend.seen.length, before)
})

t.test('a sign-out that was not taken is an error, a renewal may be refused', async t => {
  for (const status of [401, 404, 500]) {
    answers(status, {})
    await t.rejects(call(t, { logout: out }), { code: 'upstream.error' })
  }
  answers(200, { code: 401 })
  const refused = { path: 'code', in: [401] }
  const over = { ...coded, refresh: { ...refresh, refused } }
  t.equal(await call(t, over), undefined, 'otherwise than a sign-in is')
})

t.end()
