/** Sign-ins at back-ends that say more than yes and no. */
import t, { type Test } from 'tap'
import { cookieOf, noLockout, password, testGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const path = '/api/auth/admin/login'
type Answer = Parameters<typeof testUpstream>[1]

const outcomes = {
  outcomes: [
    { is: 'refused', path: 'msg', startsWith: ['password', 'unknown'] },
    { is: 'challenge', path: 'msg', startsWith: ['captcha', 'password wrong and captcha'] },
    { is: 'blocked', path: 'msg', startsWith: ['blocked'] },
    { is: 'expired-password', path: 'msg', startsWith: ['<i>expired'] },
    { is: 'success', path: 'code', in: [200] }
  ],
  message: 'msg',
  passHeaders: ['tenant-id']
}

/** Refuses each sign-in with the user name as its message, but for `alice`. */
const byName: Answer = (incoming, response, seen) => {
  const { username } = JSON.parse(String(seen.body)) as { username: string }
  const body = username === 'alice' ? { code: 200, id: 7 } : { code: 500, msg: username }
  json(200, body)(incoming, response, seen)
}
const saying = (msg: string) => json(200, { code: 500, msg })

interface Setting {
  readonly answer?: Answer
  readonly lockout?: object
  /** Whether a users file is asked after the back-end. */
  readonly beforeFile?: boolean
  readonly headers?: Record<string, string>
}

async function openGateway(
  t: Pick<Test, 'after'>,
  { answer = byName, lockout = {}, beforeFile = false, headers = {} }: Setting = {}
) {
  const backend = await testUpstream(t.after, answer)
  const sources = beforeFile && { 'b': {}, 'users-file': { kind: 'users-file' } }
  const gateway = await testGateway(t.after, {
    gateway: { identity: { prefix: beforeFile }, ...(sources && { login: { sources } }) },
    backend: backend.url,
    source: outcomes,
    limits: { limits: {}, lockout: { ...noLockout, ...lockout } }
  })
  const signIn = async (username: string, typed = password) =>
    await gateway.call(path, { json: { username, password: typed }, headers })
  return { gateway, signIn }
}

t.test('a back-end that has enough of sign-ins is no fault, and nobody’s failure', async t => {
  const answer: Answer = (_request, response) =>
    response.writeHead(429, { 'retry-after': '60' }).end('{"detail":"throttled"}')
  const lockout = { account: { failures: 1, every: '1h' } }
  const { gateway, signIn } = await openGateway(t, { answer, lockout })
  for (const _ of [1, 2]) {
    const { status, headers, json: told } = await signIn('alice')
    t.same([status, headers.get('retry-after'), told.errorCode], [429, '60', 'limit.exceeded'])
  }
  t.notMatch(await (await gateway.ops('/readyz')).text(), 'sign-in b')
})

t.test('each outcome has its own code, and the back-end’s message where config says', async t => {
  const { gateway, signIn } = await openGateway(t)
  const challenge = 'captcha wrong'
  for (const [username, status, errorCode, message, outcome] of [
    ['password wrong', 401, 'login.refused', 'password wrong', 'refused'],
    [challenge, 400, 'login.challenge', challenge, 'challenge'],
    ['blocked by <b>root</b>', 403, 'login.blocked', 'This account is blocked.', 'blocked'],
    ['<i>expired</i>', 403, 'login.expired-password', 'Your password has', 'expired-password']
  ] as const) {
    const answer = await signIn(username)
    t.match(answer, { status, json: { errorCode } }, username)
    t.ok(answer.json.message.startsWith(message), `${username}: ${answer.json.message}`)
    t.same(answer.headers.getSetCookie(), [])
    const count = `console_gateway_sign_ins_total{source="b",outcome="${outcome}"} 1`
    t.match(await gateway.metrics(), count)
  }
  t.equal((await signIn('alice')).status, 200)
  t.match(
    gateway.log.filter(({ event }) => String(event).startsWith('login.')),
    [
      { event: 'login.refused', user: 'password wrong' },
      { event: 'login.challenge', user: challenge },
      { event: 'login.refused', outcome: 'blocked' },
      { event: 'login.refused', outcome: 'expired-password' }
    ]
  )
  for (const [username, status, errorCode] of [
    ['what fits none of the tests', 502, 'upstream.invalid'],
    ['password wrong and captcha too: the first counts', 401, 'login.refused']
  ] as const) {
    t.match(await signIn(username), { status, json: { errorCode } }, username)
  }
})

const after = (failures: number) => ({ failures, every: '1h' })
const many = (count: number, ...rows: Array<readonly [username: string, status: number]>) =>
  Array.from({ length: count }, () => rows).flat()

/** Sign-ins one after another at a gateway of their own, each with its status. */
type Row = readonly [username: string, status: number, typed?: string]
const guesses = [400, 400, 429].map(status => ['alice', status, 'guess'] as const)
const counted: Record<string, readonly [Setting, readonly Row[]]> = {
  'a wrong captcha locks no account, up to its bound of 50': [
    { lockout: { account: after(3) } },
    [...many(53, ['captcha wrong', 400]), ['captcha wrong', 429], ['CAPTCHA  wrong ', 429]]
  ],
  'a blocked account and an expired password count as refused': [
    { lockout: { account: after(2) } },
    ['blocked', '<i>expired'].flatMap(name => [...many(2, [name, 403]), [name, 429] as const])
  ],
  'a wrong captcha counts for its address': [
    { lockout: { address: after(3) } },
    ['1', '2', '3', '4'].map(n => [`captcha ${n}`, n === '4' ? 429 : 400] as const)
  ],
  'a source with a wrong captcha does not end the search, and hides no guess': [
    { answer: saying('captcha wrong'), beforeFile: true, lockout: { account: after(2) } },
    [['bob', 200], ...guesses]
  ],
  'a users file that does not know the name makes no guess of a wrong captcha': [
    { answer: saying('captcha wrong'), beforeFile: true, lockout: { account: after(2) } },
    many(3, ['zoe', 400])
  ],
  'a blocked account is not asked for at the next source': [
    { answer: saying('blocked'), beforeFile: true },
    [['alice', 403]]
  ],
  'a request that makes a source fail hides no guess at another one': [
    {
      headers: { 'tenant-id': 'x'.repeat(1025) },
      beforeFile: true,
      lockout: { account: after(2) }
    },
    guesses
  ]
}
for (const [title, [setting, rows]] of Object.entries(counted)) {
  t.test(title, async t => {
    const { signIn } = await openGateway(t, setting)
    for (const [index, [username, status, typed]] of rows.entries()) {
      const answer = await signIn(username, typed)
      t.equal(answer.status, status, `${index + 1}: ${username}`)
      const locked = title.includes('address') ? 'limit.exceeded' : 'login.locked'
      if (status === 429) t.equal(answer.json.errorCode, locked)
    }
  })
}

const second = {
  user: {
    from: { path: '/getInfo', query: { with: 'roles' } },
    id: 'user.userId',
    name: 'user.nickName',
    roles: 'user.roles.roleKey',
    roleMap: { admin: 'administrator' }
  },
  token: 'token',
  outcomes: [
    { is: 'refused', path: 'code', in: [500] },
    { is: 'success', path: 'code', in: [200] }
  ],
  passHeaders: ['tenant-id'],
  passCookies: ['theme'],
  logout: { path: '/logout' }
}
const roles = [{ roleKey: 'admin' }, { roleKey: 'common' }]
const info = { code: 200, user: { userId: 12, nickName: 'Ann', roles } }
let told: readonly [status: number, answer: object] = [200, info]
const backend = await testUpstream(t.after, (incoming, response, seen) => {
  const [status, answer] = seen.url.startsWith('/getInfo')
    ? told
    : [200, { code: 200, token: 't-1' }]
  json(status, answer)(incoming, response, seen)
})
const gateway = await testGateway(t.after, {
  backend: { url: backend.url, credential: 'bearer' },
  source: second
})
const signIn = async (headers: Record<string, string> = {}) => {
  backend.seen.length = 0
  return await gateway.call(`${path}?lang=zh`, { json: { username: 'ann', password }, headers })
}

t.test('a second call tells the user, with the token of the first', async t => {
  const headers = { 'tenant-id': '{token}', 'x-other': '1', 'cookie': 'a=1; theme=d%20k; b=2' }
  const answer = await signIn(headers)
  t.match(answer, { status: 200, json: { currentAuthority: 'administrator' } })
  const [first, getInfo] = backend.seen
  t.match(first, { url: '/login', headers: { 'tenant-id': '{token}', 'cookie': 'theme=d%20k' } })
  t.match(getInfo, {
    method: 'GET',
    url: '/getInfo?with=roles',
    headers: { 'authorization': 'Bearer t-1', 'tenant-id': '{token}' }
  })
  t.notOk(getInfo?.headers.cookie)
  for (const seen of backend.seen) t.notOk(seen.headers['x-other'])
  const line = gateway.log.find(({ event }) => event === 'login')
  t.match(line, { user: 'ann', userId: '12', roles: ['administrator', 'common'] })
})

t.test('a second call that fails is a failed sign-in, signed out at the back-end', async t => {
  for (const answer of [
    [200, { code: 401, msg: 'x' }],
    [500, info],
    [200, { code: 200, user: {} }]
  ] as const) {
    told = answer
    t.match(await signIn(), { status: 502, json: { errorCode: 'upstream.invalid' } })
    await until('the sign-out', () => backend.seen.length === 3)
    t.match(backend.seen[2], { url: '/logout', headers: { authorization: 'Bearer t-1' } })
  }
})

t.test('case 17: the token may come in a header of the back-end’s sign-in', async t => {
  let header = ''
  const backend = await testUpstream(t.after, (...exchange) => {
    if (exchange[2].url === '/login') exchange[1].setHeader('authorization', header)
    json(200, { id: '1' })(...exchange)
  })
  const { call } = await testGateway(t.after, {
    backend: { url: backend.url, credential: 'bearer' },
    source: { token: { header: 'authorization' } },
    routes: { routes: { any: { path: '/any' } } }
  })
  const signIn = async () => await call(path, { json: { username: 'anna', password } })
  for (header of ['Bearer abc.def', 'abc.def', 'Token  abc.def']) {
    const answer = await signIn()
    t.equal(answer.headers.get('authorization'), null)
    t.notMatch(answer.text, 'abc.def')
    await call('/any', { cookie: cookieOf(answer) })
    t.equal(backend.seen.at(-1)?.headers.authorization, 'Bearer abc.def', header)
  }
  header = ''
  t.match(await signIn(), { status: 502, json: { errorCode: 'upstream.invalid' } })
})

/** As Django REST framework with Simple JWT does, and many an example of Express, Nest and Spring. */
t.test('a back-end gives JSON Web Tokens alone: they tell who it is, and until when', async t => {
  const seconds = Math.floor(Date.now() / 1000)
  const tokenUntil = (exp: number) => {
    const claims = JSON.stringify({ user_id: 7, roles: { admin: 1 }, exp })
    return `e30.${Buffer.from(claims).toString('base64url')}.sign`
  }
  const renewed = tokenUntil(seconds + 3600)
  const backend = await testUpstream(t.after, (...exchange) => {
    const isSignIn = exchange[2].url === '/login'
    const access = isSignIn ? tokenUntil(seconds - 1) : renewed
    json(200, { access, ...(isSignIn && { refresh: 'r1' }) })(...exchange)
  })
  const { signIn, call } = await testGateway(t.after, {
    gateway: { identity: { id: 'x-user-id', roles: 'x-user-roles' } },
    backend: { url: backend.url, credential: 'bearer' },
    source: {
      user: { id: 'access.user_id', roles: 'access.roles' },
      token: 'access',
      refreshToken: 'refresh',
      expires: { path: 'access.exp', as: 'epoch-seconds' },
      refresh: { path: '/refresh', body: { refresh: '{refreshToken}' }, token: 'access' }
    },
    routes: { routes: { any: { path: '/any' } } }
  })
  const cookie = await signIn('anna')
  for (let count = 0; count < 2; count++) await call('/any', { cookie })
  t.same(
    backend.seen.map(({ url }) => url),
    ['/login', '/refresh', '/any', '/any']
  )
  const identity = { 'x-user-id': '7', 'x-user-roles': 'admin' }
  t.match(backend.seen.at(-1)?.headers, { ...identity, authorization: `Bearer ${renewed}` })
})

/** Of Laravel Sanctum's own example and Magento; of the usual filter of Spring Security. */
t.test('the token is all of the response, or comes without one', async t => {
  const claims = Buffer.from('{"sub":"al"}').toString('base64url')
  const jwt = `e30.${claims}.sign`
  for (const [token, headers, body] of [
    ['.', { 'content-type': 'text/plain' }, `${jwt}\n`],
    ['.', { 'content-type': 'application/json' }, JSON.stringify(jwt)],
    [{ header: 'authorization' }, { authorization: `Bearer ${jwt}` }, '']
  ] as const) {
    const backend = await testUpstream(t.after, (_request, response) => {
      response.writeHead(200, headers).end(body)
    })
    const { signIn, call } = await testGateway(t.after, {
      backend: { url: backend.url, credential: 'bearer' },
      source: { token, user: { id: 'sub' } },
      routes: { routes: { any: {} } }
    })
    await call('/api/any', { cookie: await signIn('anna') })
    const sent = { 'authorization': `Bearer ${jwt}`, 'x-user-id': 'al' }
    t.match(backend.seen.at(-1)?.headers, sent, body)
  }
})

t.end()
