/** `credential: { jwt }`: back-ends know users of a users file by a token that the gateway signs. */
import { generateKeyPairSync } from 'node:crypto'
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from 'jose'
import t, { type Test } from 'tap'
import { stopClock } from '../support/clock.ts'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

const secret = 'secret-of-the-back-end-and-gateway'
const jwt = { secret: '${JWT_SECRET}' }
const newKey = () =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
    type: 'pkcs8',
    format: 'pem'
  }) as string
const [newer, older] = [newKey(), newKey()]

async function start(t: Test, credential: object, gateway = {}, status = 200) {
  const backEnd = await testUpstream(t.after, json(status, { ok: 1 }))
  const files = {
    gateway,
    backend: { url: backEnd.url, credential },
    routes: {
      endpoints: { jwks: { path: '/keys' } },
      routes: { data: { shape: 's' }, open: { access: 'public' } },
      shapes: { s: [{ pick: ['ok'] }] }
    }
  }
  const environment = { JWT_SECRET: secret, NEWER: newer, OLDER: older }
  const started = await testGateway(t.after, files, environment)
  /** The token that the back-end gets, by the header of its config. */
  const sent = async (cookie?: string, headers = {}, path = '/api/data') => {
    await started.call(path, { headers, ...(cookie && { cookie }) })
    return backEnd.seen.at(-1)?.headers ?? {}
  }
  const tokenOf = async (cookie: string) =>
    (await sent(cookie)).authorization?.replace('Bearer ', '') ?? ''
  return { ...started, sent, tokenOf }
}

t.test('HS256: the usual claims, and those of config', async t => {
  const claims = { email: '{profile.email}', main: '{role}', none: '{profile.none}', fixed: [1] }
  const { signIn, tokenOf } = await start(t, { jwt: { ...jwt, claims } })
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
  const { signIn, tokenOf } = await start(t, { jwt })
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
  const { signIn, tokenOf, call } = await start(t, {
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

  const before = await start(t, { jwt: { keys: ['${OLDER}'] } })
  const ofOlder = await before.tokenOf(await before.signIn())
  await t.resolves(jwtVerify(ofOlder, createLocalJWKSet(shown.json)), 'of a replica before')
})

t.test('the client’s own header never passes', async t => {
  const forged = { 'authorization': 'Bearer forged', 'x-user-jwt': 'forged' }
  const bearer = await start(t, { jwt })
  const cookie = await bearer.signIn()
  t.notMatch((await bearer.sent(cookie, forged)).authorization, 'forged')
  t.equal((await bearer.sent(undefined, forged, '/api/open')).authorization, undefined)
  const named = await start(t, { as: 'header:x-user-jwt', scheme: 'Signed', jwt })
  const headers = await named.sent(await named.signIn(), forged)
  t.match(headers['x-user-jwt'], /^Signed ey/)
  t.equal((await named.sent(undefined, forged, '/api/open'))['x-user-jwt'], undefined)
})

t.test('with `identity.prefix` the subject has the name of its source', async t => {
  const { signIn, tokenOf } = await start(t, { jwt }, { identity: { prefix: true } })
  t.equal(decodeJwt(await tokenOf(await signIn())).sub, 'users-file/1')
})

t.test('a back-end that refuses the token signs nobody out', async t => {
  const { call, signIn } = await start(t, { jwt }, {}, 401)
  const cookie = await signIn()
  t.match(await call('/api/data', { cookie }), {
    status: 502,
    json: { errorCode: 'upstream.error' }
  })
  t.equal((await call('/api/account/profile', { cookie })).status, 200)
})
