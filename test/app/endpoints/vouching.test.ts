/** Sign-ins at back-ends that say more than yes and no, through the gateway. */
import t, { type Test } from 'tap'
import { noLockout, password, testGateway } from '../../support/gateway.ts'
import { signInAt } from '../../support/sign-in.ts'
import { json, testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'

const path = '/api/auth/admin/login'
const outcomes = {
  outcomes: [
    { is: 'refused', path: 'msg', startsWith: ['password', 'unknown'] },
    { is: 'challenge', path: 'msg', startsWith: ['captcha', 'password wrong and captcha'] },
    { is: 'blocked', path: 'msg', startsWith: ['blocked'] },
    { is: 'expired-password', path: 'msg', startsWith: ['<i>expired'] },
    { is: 'success', path: 'code', in: [200] }
  ],
  message: 'msg'
}

/** The name of the source in metrics. */
const source = 'b'

/** A back-end that refuses each sign-in with the user name as its message, but for `alice`. */
const byName: Parameters<typeof testUpstream>[1] = (request, response, seen) => {
  const { username } = JSON.parse(String(seen.body)) as { username: string }
  const isAlice = username === 'alice'
  const body = isAlice ? { code: 200, id: 7 } : { code: 500, msg: username }
  json(200, body)(request, response, seen)
}

async function setUp(
  t: Test,
  changes: object = {},
  more: { gateway?: object; limits?: object } = {}
) {
  const backend = await testUpstream(t.after, byName)
  const files = signInAt(backend.url, { ...outcomes, ...changes })
  const login = { ...files.gateway.login, ...more.gateway }
  const gateway = await testGateway(t.after, {
    ...files,
    gateway: { login },
    limits: { limits: {}, ...more.limits }
  })
  const signIn = (username: string) => gateway.call(path, { json: { username, password } })
  return { gateway, backend, signIn }
}

t.test('each outcome has its own code, and the back-end’s message where config says', async t => {
  const { gateway, signIn } = await setUp(t)
  const cases = [
    ['password wrong', 401, 'login.refused', 'password wrong', 'refused'],
    ['captcha wrong', 400, 'login.challenge', 'captcha wrong', 'challenge'],
    ['blocked by <b>root</b>', 403, 'login.blocked', 'This account is blocked.', 'blocked'],
    [
      '<i>expired</i>',
      403,
      'login.expired-password',
      'Your password has expired.',
      'expired-password'
    ]
  ] as const
  for (const [username, status, errorCode, message, outcome] of cases) {
    const answer = await signIn(username)
    t.match(answer, { status, json: { errorCode } }, username)
    t.ok(answer.json.message.startsWith(message), `${username}: ${answer.json.message}`)
    t.same(answer.headers.getSetCookie(), [])
    const metrics = await (await gateway.ops('/metrics')).text()
    t.match(metrics, `console_gateway_sign_ins_total{source="${source}",outcome="${outcome}"} 1`)
  }
  t.equal((await signIn('alice')).status, 200)
  t.match(
    gateway.log.filter(({ event }) => String(event).startsWith('login.')),
    [
      { event: 'login.refused', user: 'password wrong' },
      { event: 'login.challenge', user: 'captcha wrong' },
      { event: 'login.refused', outcome: 'blocked' },
      { event: 'login.refused', outcome: 'expired-password' }
    ]
  )
})

t.test('what fits none of the tests is no refusal', async t => {
  const { signIn } = await setUp(t)
  t.match(await signIn('something else'), { status: 502, json: { errorCode: 'upstream.invalid' } })
})

t.test('a challenge never wins over a refusal that stands before it', async t => {
  const { signIn } = await setUp(t)
  t.match(await signIn('password wrong and captcha too'), {
    status: 401,
    json: { errorCode: 'login.refused' }
  })
})

const withUsersFile = (sources: object) => ({
  identity: { prefix: true },
  login: { sources: { ...sources, 'users-file': { kind: 'users-file' } } }
})

const locking = (of: 'account' | 'address', after: number) => ({
  lockout: { ...noLockout, [of]: { failures: after, every: '1h' } }
})

t.test('a wrong captcha locks no account, up to its bound', async t => {
  const { signIn } = await setUp(t, {}, { limits: locking('account', 3) })
  for (let count = 1; count <= 50; count++) {
    t.match(await signIn('captcha wrong'), { status: 400 }, `${count}`)
  }
  for (let count = 51; count <= 53; count++) {
    t.match(await signIn('captcha wrong'), { status: 400 }, `counts as refused: ${count}`)
  }
  t.match(await signIn('captcha wrong'), { status: 429, json: { errorCode: 'login.locked' } })
  t.match(await signIn('CAPTCHA  wrong '), { status: 429 }, 'spellings share the count')
})

t.test('a blocked account and an expired password count as refused', async t => {
  for (const username of ['blocked', '<i>expired']) {
    const { signIn } = await setUp(t, {}, { limits: locking('account', 2) })
    for (const status of [403, 403, 429]) t.equal((await signIn(username)).status, status, username)
  }
})

t.test('a wrong captcha counts for its address', async t => {
  const { signIn } = await setUp(t, {}, { limits: locking('address', 3) })
  for (const status of [400, 400, 400, 429]) {
    t.equal((await signIn(`captcha ${status} ${Math.random()}`)).status, status)
  }
})

/** A gateway whose back-end is asked before the users file. */
async function beforeFile(t: Test, answer: Parameters<typeof testUpstream>[1]) {
  const backend = await testUpstream(t.after, answer)
  const { gateway: at, routes } = signInAt(backend.url, { ...outcomes, passHeaders: ['tenant-id'] })
  return await testGateway(t.after, {
    gateway: withUsersFile(at.login.sources),
    routes,
    limits: { limits: {}, ...locking('account', 2) }
  })
}

const saying = (msg: string) => json(200, { code: 500, msg })
const guess = { username: 'alice', password: 'guess' }
/** Sign-ins of each row stand for the same guess again and again. */
const guesses: ReadonlyArray<
  readonly [title: string, answer: ReturnType<typeof saying>, json: object, statuses: number[]]
> = [
  [
    'a source with a wrong captcha does not end the search, and hides no guess',
    saying('captcha wrong'),
    guess,
    [400, 400, 429]
  ],
  [
    'a users file that does not know the name makes no guess of a wrong captcha',
    saying('captcha wrong'),
    { username: 'zoe', password },
    [400, 400, 400]
  ],
  [
    'a blocked account is not asked for at the next source',
    saying('blocked'),
    { username: 'alice', password },
    [403]
  ]
]
for (const [title, answer, typed, statuses] of guesses) {
  t.test(title, async t => {
    const gateway = await beforeFile(t, answer)
    for (const status of statuses) {
      t.equal((await gateway.call(path, { json: typed })).status, status)
    }
  })
}

t.test('a source with a wrong captcha lets the next one sign in', async t => {
  t.ok(await (await beforeFile(t, saying('captcha wrong'))).signIn('bob'))
})

t.test('a request that makes a source fail hides no guess at another one', async t => {
  const gateway = await beforeFile(t, byName)
  const headers = { 'tenant-id': 'x'.repeat(1025) }
  for (const status of [400, 400, 429]) {
    t.equal((await gateway.call(path, { json: guess, headers })).status, status)
  }
})

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
const info = {
  code: 200,
  user: { userId: 12, nickName: 'Ann', roles: [{ roleKey: 'admin' }, { roleKey: 'common' }] }
}

async function withSecondCall(t: Test, answer: object, status = 200, more: object = {}) {
  const backend = await testUpstream(t.after, (request, response, seen) => {
    if (seen.url.startsWith('/getInfo')) return json(status, answer)(request, response, seen)
    json(200, { code: 200, token: 't-1' })(request, response, seen)
  })
  const { gateway: at, routes } = signInAt(backend.url, { ...second, ...more })
  const upstreams = { b: { ...routes.upstreams.b, credential: 'bearer' } }
  const gateway = await testGateway(t.after, { gateway: at, routes: { upstreams } })
  return { backend, gateway }
}

t.test('a second call tells the user, with the token of the first', async t => {
  const { backend, gateway } = await withSecondCall(t, info)
  const answer = await gateway.call(`${path}?lang=zh`, {
    json: { username: 'ann', password },
    headers: { 'tenant-id': '{token}', 'x-other': '1', 'cookie': 'a=1; theme=d%20k; b=2' }
  })
  t.match(answer, { status: 200, json: { currentAuthority: 'administrator' } })
  const [signIn, getInfo] = backend.seen
  t.match(signIn, {
    url: '/login',
    headers: { 'tenant-id': '{token}', 'cookie': 'theme=d%20k' }
  })
  t.match(getInfo, {
    method: 'GET',
    url: '/getInfo?with=roles',
    headers: { 'authorization': 'Bearer t-1', 'tenant-id': '{token}' }
  })
  t.notOk(getInfo?.headers.cookie)
  for (const seen of backend.seen) t.notOk(seen.headers['x-other'])
  t.match(
    gateway.log.find(({ event }) => event === 'login'),
    { user: 'ann', userId: '12', roles: ['administrator', 'common'] }
  )
})

t.test('a second call that fails is a failed sign-in, signed out at the back-end', async t => {
  const cases = [
    [{ code: 401, msg: 'x' }, 200],
    [info, 500],
    [{ code: 200, user: {} }, 200]
  ] as const
  for (const [answer, status] of cases) {
    const { backend, gateway } = await withSecondCall(t, answer, status)
    const signIn = { json: { username: 'ann', password } }
    t.match(await gateway.call(path, signIn), {
      status: 502,
      json: { errorCode: 'upstream.invalid' }
    })
    await until('the sign-out', () => backend.seen.length === 3)
    t.match(backend.seen[2], { url: '/logout', headers: { authorization: 'Bearer t-1' } })
  }
})

t.test('what is too long is refused, and no failure', async t => {
  const { backend, gateway } = await withSecondCall(t, info)
  const call = (headers: Record<string, string>) =>
    gateway.call(path, { json: { username: 'ann', password }, headers })
  const long = 'x'.repeat(1025)
  for (const answer of [
    await call({ 'tenant-id': long }),
    await call({ cookie: `theme=${long}` })
  ]) {
    t.match(answer, { status: 400, json: { errorCode: 'request.malformed' } })
    t.notMatch(answer.text, 'xxx')
  }
  t.same(backend.seen, [])
})
