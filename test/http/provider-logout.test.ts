import { generateKeyPairSync } from 'node:crypto'
import { decodeJwt, importJWK, type JWK, SignJWT, UnsecuredJWT } from 'jose'
import { inspect } from 'node:util'
import t, { type Test } from 'tap'
import { testBrowser } from '../support/chromium.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'
import {
  oidcClient,
  oidcPath,
  oidcSource,
  testProvider,
  type TestProvider
} from '../support/oidc-provider.ts'
import { oidcVisitor, type Visitor } from '../support/oidc-visitor.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

type Claims = Record<string, unknown>

const session = '/api/session'
const logoutPath = '/api/account/logout'
const event = 'http://schemas.openid.net/event/backchannel-logout'

/** Where the provider is the source of sign-ins. Its call goes to the gateway that it knows first. */
async function gatewayWith(t: Test, provider: TestProvider, gateway: object = {}, routes = {}) {
  const login = { sources: { [oidcSource]: provider.config() } }
  const files = {
    gateway: { login, console: { root: 'pages' }, ...gateway },
    routes,
    limits: { limits: { addresses: { by: 'address', max: 20, window: '1h' } } },
    code: { 'pages/index.html': '<!doctype html><title>Console</title>' }
  }
  return await testGateway(t.after, files, provider.environment)
}

async function oneGateway(t: Test, gateway: object = {}, routes = {}) {
  const provider = await testProvider(t.after)
  const there = await gatewayWith(t, provider, gateway, routes)
  provider.register(there.url)
  return { provider, gateway: there }
}

async function signIn(gateway: TestGateway, provider: TestProvider, account = 'alice') {
  const visitor = oidcVisitor(() => gateway.url, provider)
  const { status, text } = await visitor.signIn(account)
  if (status !== 303) throw new Error(`sign-in: ${status} ${text}`)
  return visitor
}

const send = async (gateway: TestGateway, token: string, more: object = {}) =>
  await gateway.call(`${oidcPath}/backchannel-logout`, {
    method: 'POST',
    body: new URLSearchParams({ logout_token: token }).toString(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    ...more
  })

const isAlive = async ({ call }: Visitor) => (await call(session)).status === 200

/** A client of the provider, of which the types lack this. */
interface Caller {
  readonly backchannelLogout: (sub: string, sid: unknown) => Promise<void>
}

let ids = 0
const claimsFor = ({ issuer }: TestProvider, more: Claims = {}): Claims => {
  const now = Math.floor(Date.now() / 1000)
  return {
    iss: issuer,
    aud: oidcClient.clientId,
    iat: now,
    exp: now + 120,
    jti: `id-${++ids}`,
    events: { [event]: {} },
    sub: 'alice',
    ...more
  }
}

/** Signed as the provider does; what is undefined is left out. */
const signed = async (provider: TestProvider, more: Claims = {}, header: object = {}) => {
  const { kid, ...key } = provider.key()
  const claims = JSON.parse(JSON.stringify(claimsFor(provider, more))) as Claims
  return await new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', typ: 'logout+jwt', ...(kid && { kid }), ...header })
    .sign(await importJWK(key as JWK, 'ES256'))
}

t.test('what the provider posts ends the session at the other replica', async t => {
  const provider = await testProvider(t.after)
  const redis = { url: (await testRedis(t.after)).url }
  const told = await gatewayWith(t, provider, { redis })
  const other = await gatewayWith(t, provider, { redis })
  provider.register(told.url, other.url)
  const [alice, bob] = [await signIn(other, provider), await signIn(other, provider, 'bob')]
  t.same([await isAlive(alice), await isAlive(bob)], [true, true])
  const { sid } = decodeJwt(provider.idTokens[0] ?? '')
  const client = await provider.provider().Client.find(oidcClient.clientId)
  await (client as unknown as Caller).backchannelLogout('alice', sid)
  t.equal(provider.logoutTokens.length, 1, 'its call has arrived')
  await until('the session is over', async () => !(await isAlive(alice)))
  t.match(await alice.call(session), { status: 401, json: { errorCode: 'session.upstream' } })
  t.equal(await isAlive(bob), true)
  const line = await told.logged(({ event }) => event === 'logout.provider')
  t.match(line, { source: oidcSource, closed: 1 })
  const again = await signIn(other, provider)
  for (const gateway of [told, other]) {
    const replayed = await send(gateway, provider.logoutTokens[0] ?? '')
    t.match(replayed, { status: 400, json: { errorCode: 'request.malformed' } }, 'replayed')
  }
  t.equal(await isAlive(again), true)
})

t.test('without sid all sessions of the user end; clocks and typ may be a little off', async t => {
  const { provider, gateway } = await oneGateway(t)
  const now = Math.floor(Date.now() / 1000)
  for (const [what, more, header] of [
    ['90 s late', { iat: now - 90, exp: now - 1 }],
    ['without typ', {}, { typ: undefined }],
    ['without exp, as Ory Hydra', { exp: undefined }, {}],
    ['of any type', {}, { typ: 'JWT' }],
    ['90 s early', { iat: now + 90, exp: now + 200 }]
  ] as const) {
    const sessions = [await signIn(gateway, provider), await signIn(gateway, provider)]
    const answer = await send(gateway, await signed(provider, more, header))
    t.same([answer.status, answer.text], [200, ''], what)
    t.equal(answer.headers.get('cache-control'), 'no-store')
    t.same(await Promise.all(sessions.map(isAlive)), [false, false], what)
    // The next sign-in is later than that logout.
    provider.clockShift += 10_000
  }
})

t.test('what is no logout token of the provider ends nothing; none is over a limit', async t => {
  const { provider, gateway } = await oneGateway(t)
  const visitor = await signIn(gateway, provider)
  const [idToken = ''] = provider.idTokens
  const { sid } = decodeJwt(idToken)
  const now = Math.floor(Date.now() / 1000)
  const valid = claimsFor(provider, { sid })
  const { kid = '' } = provider.key()
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  const [head, , signature] = (await signed(provider, valid)).split('.')
  const body = Buffer.from(JSON.stringify({ ...valid, sub: 'bob' })).toString('base64url')
  const withSecret = new SignJWT(valid).setProtectedHeader({ alg: 'HS256', kid })
  const tokens: Record<string, string> = {
    'no token': '',
    'no JWT': 'a.b.c',
    'an ID token': idToken,
    'alg none': new UnsecuredJWT(valid).encode(),
    'another key': await new SignJWT(valid).setProtectedHeader({ alg: 'ES256', kid }).sign(other),
    'a secret': await withSecret.sign(Buffer.from(oidcClient.clientSecret)),
    'other claims': [head, body, signature].join('.'),
    'another type': await signed(provider, { sid }, { typ: 'at+jwt' }),
    'a type that is no text': await signed(provider, { sid }, { typ: 5 })
  }
  for (const more of [
    ...[{ aud: 'other' }, { iss: 'http://127.0.0.1:1' }, { nonce: 'n' }],
    ...[{ events: undefined }, { events: { other: {} } }, { events: { [event]: true } }],
    ...[{ jti: undefined }, { sid: undefined, sub: undefined }, { iat: undefined }],
    { iat: now - 300, exp: now - 130 },
    { iat: now - 800, exp: now + 100 },
    { iat: now + 2000, exp: now + 3000 }
  ]) {
    tokens[inspect(more)] = await signed(provider, { sid, ...more })
  }
  for (const [what, token] of Object.entries(tokens)) {
    const answer = await send(gateway, token)
    t.match(answer, { status: 400, json: { errorCode: 'request.malformed' } }, what)
    t.equal(answer.headers.get('cache-control'), 'no-store')
  }
  const json = { 'content-type': 'application/json' }
  t.equal((await send(gateway, '', { headers: json, body: '{}' })).status, 415)
  t.equal((await send(gateway, 'x'.repeat(20_000))).status, 413)
  t.equal(await isAlive(visitor), true)
  t.equal((await send(gateway, await signed(provider, { sid }))).status, 200)
  t.equal(await isAlive(visitor), false)
  for (const token of Object.values(tokens).filter(({ length }) => length > 9)) {
    t.notOk(JSON.stringify(gateway.log).includes(token), 'no log has it')
  }
})

t.test('a sign-in that began before the logout of its user opens no session', async t => {
  const { provider, gateway } = await oneGateway(t)
  const visitor = oidcVisitor(() => gateway.url, provider)
  const callback = await visitor.atProvider((await visitor.start()).next, 'alice')
  // Later than the ID token, which is still to come.
  const iat = Math.floor(Date.now() / 1000) + 60
  t.equal((await send(gateway, await signed(provider, { iat, exp: iat + 60 }))).status, 200)
  t.equal((await visitor.comeBack(callback)).status, 401)
  t.equal(await isAlive(visitor), false)
  await until('its tokens are revoked', () => provider.asked.includes('/token/revocation'))
})

t.test('while Redis or the keys are away it is 503, and the same token is good later', async t => {
  const redis = await testRedis(t.after)
  const { provider, gateway } = await oneGateway(t, {
    redis: { url: redis.url, commandTimeout: '500ms' }
  })
  provider.fault = 'broken'
  const token = await signed(provider)
  t.match(await send(gateway, token), { status: 503, json: { errorCode: 'upstream.refused' } })
  provider.fault = undefined
  const visitor = oidcVisitor(() => gateway.url, provider)
  await until('it is back', async () => (await visitor.signIn('alice')).status === 303)
  redis.signal('SIGSTOP')
  t.match(await send(gateway, token), { status: 503, json: { errorCode: 'session.unavailable' } })
  redis.signal('SIGCONT')
  await until('it is accepted', async () => (await send(gateway, token)).status === 200)
  t.equal(await isAlive(visitor), false)
})

t.test('sign-out is first here: a page posts the hint once; the next sign-in asks', async t => {
  const { provider, gateway } = await oneGateway(t)
  const visitor = await signIn(gateway, provider)
  const asks = async () => (await visitor.start()).next.includes('prompt=login')
  t.equal(await asks(), false)
  const out = await visitor.call(logoutPath)
  t.equal(out.status, 200)
  t.equal(await isAlive(visitor), false)
  await until('its tokens are revoked', () => provider.asked.includes('/token/revocation'))
  const { logoutUrl } = out.json.data
  t.ok(logoutUrl.startsWith(`${oidcPath}/logout?`))
  const [idToken = ''] = provider.idTokens
  for (const part of idToken.split('.')) t.notOk(out.text.includes(part), 'no token in it')
  const page = await visitor.ask(logoutUrl)
  t.equal(page.status, 200)
  t.equal(page.headers.get('cache-control'), 'no-store')
  t.match(page.headers.get('content-security-policy'), /^default-src 'none'; script-src 'sha256-/)
  t.ok(page.text.includes(`name="id_token_hint" value="${idToken}"`))
  t.ok(page.text.includes(`action="${provider.issuer}/session/end"`))
  const bare = `${oidcPath}/logout`
  for (const again of [logoutUrl, `${logoutUrl}.x`, bare, `${bare}?ticket=x`]) {
    t.match(await visitor.ask(again), { status: 303, next: '/' }, again)
  }
  t.equal(await asks(), true)
  await visitor.signIn('alice')
  t.equal(await asks(), false)
  await gateway.ops('/ops/api/sessions/close', { json: { user: 'alice' } })
  t.equal(await asks(), true, 'an operator has ended it')
})

t.test('a link to the sign-out leads to the provider; its silence holds nobody up', async t => {
  const { provider, gateway } = await oneGateway(t)
  const visitor = await signIn(gateway, provider)
  provider.fault = 'silent'
  const out = await visitor.ask(logoutPath)
  t.equal(out.status, 303)
  t.equal(await isAlive(visitor), false)
  t.equal((await visitor.ask(out.next)).status, 200)
  t.equal((await visitor.ask(logoutPath)).status, 200, 'nobody is signed in')
})

t.test('a browser signs out at the gateway and the provider, and comes back', async t => {
  const browser = await testBrowser(t.after)
  const answer = { json: { msg: 'bye' }, inEnvelope: 'flat' }
  const logout = { path: logoutPath, answer }
  const { provider, gateway } = await oneGateway(t, {}, { endpoints: { logout } })
  const page = await browser.newPage()
  const signInHere = async () => {
    await page.goto(gateway.url + oidcPath)
    await page.click('button[value=alice]')
    await page.waitForURL(`${gateway.url}/`)
  }
  const fetchJson = async (path: string) =>
    JSON.parse(await page.evaluate(async path => await (await fetch(path)).text(), path))
  await signInHere()
  const { msg, logoutUrl } = await fetchJson(logoutPath)
  t.equal(msg, 'bye')
  await page.goto(gateway.url + logoutUrl)
  await page.click('button[value=yes]')
  await page.waitForURL(`${gateway.url}/`)
  t.equal(provider.logoutTokens.length, 1, 'the provider has ended its session')
  // It asks who signs in: its session is over as well.
  await signInHere()
  t.match(await fetchJson(session), { data: { user: { id: 'alice' } } })
})
