/** Users of a users file, before back-ends that take tokens alone: their own by exchange, or signed ones. */
import { generateKeyPairSync } from 'node:crypto'
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import { stopClock } from '../support/clock.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { json, type Seen, testUpstream } from '../support/upstream.ts'
import { refusal } from '../support/websocket.ts'

/** Knows `alice` and `bob`, and gives each call of the service a token of its own. */
async function startBackEnd(t: Test) {
  const tokens = new Map<string, string>()
  const state = {
    tokens,
    known: ['alice', 'bob'],
    /** Of a token. Negative: it does not expire. */
    seconds: -1,
    /** Answers the service in its place. */
    failure: 0,
    refusesAll: false,
    exchanged: [] as string[],
    ended: [] as string[]
  }
  const give = ({ headers, body }: Seen) => {
    if (state.failure > 0) return json(state.failure, {})
    if (headers['x-service-key'] !== 'key-of-the-service') return json(401, {})
    const { who } = JSON.parse(body.toString()) as { who: string }
    state.exchanged.push(who)
    if (!state.known.includes(who)) return json(404, { message: 'nobody' })
    const token = `token-${state.exchanged.length}-of-${who}`
    tokens.set(token, who)
    return json(200, { data: { token, seconds: state.seconds } })
  }
  const server = await testUpstream(t.after, (request, response, seen) => {
    const token = String(seen.headers['x-token'] ?? '').replace('JWT ', '')
    const who = state.refusesAll ? undefined : tokens.get(token)
    const answerOf = (): ReturnType<typeof json> => {
      if (seen.url === '/service/token') return give(seen)
      if (who === undefined) return json(401, {})
      if (seen.url !== '/leave') return json(200, { who, sent: seen.body.toString() })
      state.ended.push(token)
      tokens.delete(token)
      return json(200, {})
    }
    answerOf()(request, response, seen)
  })
  return { ...server, state }
}

const exchange = {
  path: '/service/token',
  headers: { 'x-service-key': '${SERVICE_KEY}' },
  body: { who: '{username}', roles: '{roles}' },
  token: 'data.token',
  expires: { path: 'data.seconds' },
  logout: { path: '/leave' }
}

async function start(t: Test, redis?: string) {
  const backEnd = await startBackEnd(t)
  const other = await testUpstream(t.after)
  const files = {
    redis,
    backend: { url: backEnd.url, credential: { as: 'header:x-token', scheme: 'JWT', exchange } },
    routes: {
      upstreams: { other: { url: other.url } },
      routes: {
        data: { methods: ['GET', 'POST'] },
        both: { parts: { mine: { upstream: 'b', rewrite: '/p', into: 'mine' } } },
        open: { access: 'public' },
        live: { websocket: {} },
        other: { upstream: 'other' }
      }
    }
  }
  const replica = async () => {
    const started = await testGateway(t.after, files, { SERVICE_KEY: 'key-of-the-service' })
    await started.ready()
    return started
  }
  return { ...backEnd, other, replica, gateway: await replica() }
}

const get = async ({ call }: Pick<TestGateway, 'call'>, cookie: string) =>
  await call('/api/data', { cookie })

t.test('12 calls at once over two replicas: one exchange, each as that user', async t => {
  const redis = await testRedis(t.after)
  const { gateway, replica, state, seen, other } = await start(t, redis.url)
  const second = await replica()
  const cookie = await gateway.signIn()
  t.same(state.exchanged, [], 'a sign-in asks nothing')
  const calls = Array.from({ length: 12 }, (_, n) => get(n % 2 ? gateway : second, cookie))
  for (const { status, json } of await Promise.all(calls)) {
    t.match({ status, json }, { status: 200, json: { who: 'alice' } })
  }
  t.same(state.exchanged, ['alice'])
  t.match(JSON.parse(seen[0]?.body.toString() ?? ''), { who: 'alice', roles: ['admin', 'user'] })
  t.match(await get(second, await gateway.signIn('bob')), { json: { who: 'bob' } })
  await gateway.call('/api/other', { cookie })
  const told = JSON.stringify([other.seen, gateway.log])
  t.notMatch(told, 'token-', 'another upstream gets no token, nor does the log')
})

t.test('no token of a client passes', async t => {
  const { gateway, state, seen } = await start(t)
  const [alice, bob] = [await gateway.signIn(), await gateway.signIn('bob')]
  await get(gateway, bob)
  const [stolen = ''] = state.tokens.keys()
  const headers = { 'x-token': `JWT ${stolen}`, 'authorization': `Bearer ${stolen}` }
  t.match(await gateway.call('/api/data', { cookie: alice, headers }), { json: { who: 'alice' } })
  t.equal((await gateway.call('/api/open', { headers })).status, 401)
  t.equal(seen.at(-1)?.headers['x-token'], undefined)
})

t.test('a token that is over is exchanged before the request goes out', async t => {
  const { gateway, state } = await start(t)
  state.seconds = 0
  const cookie = await gateway.signIn()
  for (let turn = 0; turn < 3; turn++) t.match(await get(gateway, cookie), { status: 200 })
  t.equal(state.exchanged.length, 3)
})

t.test('a back-end that forgot its tokens is asked once more; nobody is signed out', async t => {
  const { gateway, state } = await start(t)
  const cookie = await gateway.signIn()
  const forget = async () => {
    await get(gateway, cookie)
    state.tokens.clear()
    state.exchanged = []
  }
  await forget()
  const reads = await Promise.all([get(gateway, cookie), get(gateway, cookie)])
  t.match(reads, [{ status: 200 }, { status: 200 }])
  t.same(state.exchanged, ['alice'], 'one exchange for both')
  await forget()
  const saved = await gateway.call('/api/data', { cookie, json: { title: 'New' } })
  t.match(saved, { status: 200, json: { who: 'alice', sent: '{"title":"New"}' } })
  await forget()
  t.match(await gateway.call('/api/both', { cookie }), { json: { mine: { who: 'alice' } } })
  t.same(state.exchanged, ['alice'])
})

t.test('a WebSocket that is refused for a dead token has a new one at its next try', async t => {
  const { gateway, state } = await start(t)
  const cookie = await gateway.signIn()
  await get(gateway, cookie)
  state.tokens.clear()
  t.match(await refusal(`${gateway.url}/api/live`, { cookie }), { status: 503 })
  t.same(state.exchanged, ['alice', 'alice'])
})

t.test('a back-end that refuses new tokens is at fault, and is not asked for more', async t => {
  const { gateway, state } = await start(t)
  const cookie = await gateway.signIn()
  state.refusesAll = true
  for (let turn = 0; turn < 3; turn++) {
    t.match(await get(gateway, cookie), { status: 502, json: { errorCode: 'upstream.error' } })
  }
  t.equal(state.exchanged.length, 2)
  t.equal((await gateway.call('/api/account/profile', { cookie })).status, 200)
})

t.test('a user whom the back-end does not know is 403 there, and stays signed in', async t => {
  const { gateway, state } = await start(t)
  state.known = ['bob']
  const [alice, bob] = [await gateway.signIn(), await gateway.signIn('bob')]
  const refused = await get(gateway, alice)
  t.match(refused, { status: 403, json: { errorCode: 'route.unknown-user' } })
  t.match(refused.json.errorMessage, 'does not know your account')
  t.equal((await get(gateway, bob)).status, 200)
  t.equal((await gateway.call('/api/other', { cookie: alice })).status, 200)
  state.known = ['alice']
  t.equal((await get(gateway, alice)).status, 200, 'once it knows the user')
})

t.test('a back-end that gives no token stops no sign-in, and is no 401', async t => {
  const { gateway, state, close } = await start(t)
  const cookie = await gateway.signIn()
  // 401: the key of the service is wrong.
  for (const failure of [401, 500, 302]) {
    state.failure = failure
    t.match(await get(gateway, cookie), { status: 502, json: { errorCode: 'upstream.invalid' } })
  }
  state.failure = 0
  t.equal((await get(gateway, cookie)).status, 200)
  await close()
  const later = await gateway.signIn('bob')
  t.equal((await get(gateway, later)).status, 502)
  t.equal((await gateway.call('/api/account/profile', { cookie: later })).status, 200)
})

t.test('the end of a session ends its token at the back-end, and no other', async t => {
  const { gateway, state } = await start(t)
  const [first, second] = [await gateway.signIn(), await gateway.signIn()]
  await get(gateway, first)
  await get(gateway, second)
  await gateway.call('/api/account/logout', { method: 'POST', cookie: first })
  await until('the sign-out', () => state.ended.length > 0)
  t.same(state.ended, ['token-1-of-alice'])
  t.equal((await get(gateway, second)).status, 200)
  await gateway.ops('/ops/api/sessions/close', { json: { user: 'alice' } })
  await until('the sign-out', () => state.ended.length > 1)
  t.same(state.ended, ['token-1-of-alice', 'token-2-of-alice'])
})

const secret = 'secret-of-the-back-end-and-gateway'
const jwt = { secret: '${JWT_SECRET}' }
const newKey = () =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    type: 'pkcs8',
    format: 'pem'
  }) as string
const [newer, older] = [newKey(), newKey()]

async function startSigning(t: Test, credential: object, gateway = {}, status = 200) {
  const backEnd = await testUpstream(t.after, json(status, { ok: 1 }))
  const files = {
    gateway,
    backend: { url: backEnd.url, credential },
    routes: {
      endpoints: { jwks: { path: '/keys' } },
      routes: { data: { shape: 's' } },
      shapes: { s: [{ pick: ['ok'] }] }
    }
  }
  const environment = { JWT_SECRET: secret, NEWER: newer, OLDER: older }
  const started = await testGateway(t.after, files, environment)
  /** That the back-end gets. */
  const tokenOf = async (cookie: string) => {
    await started.call('/api/data', { cookie })
    return backEnd.seen.at(-1)?.headers.authorization?.replace('Bearer ', '') ?? ''
  }
  return { ...started, tokenOf }
}

t.test('HS256: the usual claims, and those of config', async t => {
  const claims = { email: '{profile.email}', main: '{role}', none: '{profile.none}', fixed: [1] }
  const { signIn, tokenOf } = await startSigning(t, { jwt: { ...jwt, claims } })
  const token = await tokenOf(await signIn())
  const expected = { issuer: 'console-gateway', audience: 'b', algorithms: ['HS256'] }
  const { payload } = await jwtVerify(token, Buffer.from(secret), expected)
  const { iat = 0, exp = 0, jti, ...others } = payload
  t.same(others, {
    iss: 'console-gateway',
    aud: 'b',
    sub: '1',
    preferred_username: 'alice',
    name: 'Alice Admin',
    roles: ['admin', 'user'],
    email: 'alice@example.com',
    main: 'admin',
    fixed: [1]
  })
  t.same([exp - iat, typeof jti], [60, 'string'])
  t.equal(decodeJwt(await tokenOf(await signIn('bob'))).sub, '2')
})

t.test('a token is used for half its life, and each session has its own', async t => {
  const passTime = stopClock(t.after)
  const { signIn, tokenOf } = await startSigning(t, { jwt })
  const [cookie, other] = [await signIn(), await signIn()]
  const first = await tokenOf(cookie)
  t.not(await tokenOf(other), first)
  passTime(29_000)
  t.equal(await tokenOf(cookie), first)
  passTime(1000)
  const second = await tokenOf(cookie)
  t.not(second, first)
  t.equal((decodeJwt(second).iat ?? 0) - (decodeJwt(first).iat ?? 0), 30)
})

t.test('ES256: the first key signs, the keys of all are public', async t => {
  const { signIn, tokenOf, call } = await startSigning(t, {
    jwt: {
      keys: ['${NEWER}', '${OLDER}'],
      claims: { iss: 'https://console.example.com', aud: 'api' }
    }
  })
  const token = await tokenOf(await signIn())
  const shown = await call('/keys')
  t.match(shown, { status: 200, json: { keys: [{ kty: 'EC' }, { kty: 'EC' }] } })
  t.notMatch(shown.text, /"d":/)
  t.equal(shown.headers.get('cache-control'), 'public, max-age=300')
  t.equal(decodeProtectedHeader(token).kid, shown.json.keys[0].kid)
  const expected = { issuer: 'https://console.example.com', audience: 'api' }
  await t.resolves(jwtVerify(token, createLocalJWKSet(shown.json), expected))

  const before = await startSigning(t, { jwt: { keys: ['${OLDER}'] } })
  const ofOlder = await before.tokenOf(await before.signIn())
  await t.resolves(jwtVerify(ofOlder, createLocalJWKSet(shown.json)), 'of a replica before')
})

t.test('with `identity.prefix` the subject has the name of its source', async t => {
  const { signIn, tokenOf } = await startSigning(t, { jwt }, { identity: { prefix: true } })
  t.equal(decodeJwt(await tokenOf(await signIn())).sub, 'users-file/1')
})

t.test('a back-end that refuses the token signs nobody out', async t => {
  const { call, signIn } = await startSigning(t, { jwt }, {}, 401)
  const cookie = await signIn()
  t.match(await call('/api/data', { cookie }), {
    status: 502,
    json: { errorCode: 'upstream.error' }
  })
  t.equal((await call('/api/account/profile', { cookie })).status, 200)
})
