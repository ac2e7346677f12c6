/** Sign-in at a real OpenID provider, through HTTP, as far as one gateway goes. */
import t, { type Test } from 'tap'
import { identityOf } from '../../src/login/oidc/claims.ts'
import { Provider } from '../../src/login/oidc/provider.ts'
import type { Status } from '../../src/ops/state-schemas.ts'
import { callOnce } from '../support/call.ts'
import { wallClock } from '../support/clock.ts'
import { testGateway } from '../support/gateway.ts'
import { linesIn } from '../support/ledger.ts'
import { oidcPath, staffClaim, testProvider } from '../support/oidc-provider.ts'
import { oidcVisitor } from '../support/oidc-visitor.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const passTime = wallClock(t.teardown)
const provider = await testProvider(t.teardown)
provider.fault = 'broken'
const backend = await testUpstream(t.teardown)
const otherPath = '/api/auth/staff'

const gateway = await testGateway(
  t.after,
  {
    gateway: {
      envelope: { dialect: 'ant-design-pro', errorStatus: 'ok' },
      audit: { key: 'file:session-secret' },
      identity: { source: 'x-user-source' },
      console: { root: 'site', signIn: 'sso' },
      login: {
        sources: {
          sso: provider.config({ require: { [staffClaim]: [true] } }),
          // The same provider, as another one.
          staff: provider.config({ path: otherPath })
        }
      }
    },
    backend: backend.url,
    routes: {
      upstreams: { orders: { url: backend.url, credential: { from: 'sso', as: 'bearer' } } },
      routes: { orders: { upstream: 'orders' }, plain: {}, page: { path: '/reports/print' } }
    },
    code: { 'site/index.html': '<title>console</title>' }
  },
  provider.environment
)
for (const account of Object.values(provider.accounts)) account[staffClaim] = true
const visitor = () => oidcVisitor(() => gateway.url, provider)
const hour = 3_600_000

t.test('while its provider is away the gateway starts, and a sign-in is 503', async t => {
  const signInState = async () => {
    return ((await gateway.opsJson('status')) as Status).parts['sign-in sso'] ?? ''
  }
  const { start, ask } = visitor()
  const { status, text: page, headers } = await start()
  t.equal(status, 503)
  t.match(await signInState(), /^does not answer since 20\S+: the OpenID provider: /)
  t.match(page, `href="${oidcPath}"`, 'a page, which goes nowhere by itself')
  t.notMatch(page, 'http-equiv')
  t.match(headers.get('content-type'), 'text/html')
  t.match(JSON.parse((await ask('/api/session')).text), {
    success: false,
    errorCode: 'session.none'
  })
  provider.fault = undefined
  provider.register(gateway.url)
  await until('the provider is asked again', async () => (await start()).status === 302)
  t.equal(await signInState(), '')
})

t.test('the redirect URI does not name the usual port, though a proxy may', async t => {
  const headers = { host: 'Console.Example.COM:80' }
  const { location = '' } = (await callOnce(gateway.url + oidcPath, { headers })).headers
  const uri = new URL(location).searchParams.get('redirect_uri')
  t.equal(uri, `http://console.example.com${oidcPath}/callback`)
})

t.test('a sign-in: identity by claims, mapped roles, and the landing path', async t => {
  const { signIn, call, jar } = visitor()
  const done = await signIn('alice', '/orders?page=2#top')
  t.match(done, { status: 303, next: '/orders?page=2#top' })
  t.match((await call('/api/account/profile')).json.data, {
    userid: 'alice',
    name: 'Alice Admin',
    email: 'alice@example.com',
    access: 'admin'
  })
  await call('/api/orders')
  const { headers } = backend.seen.at(-1) ?? {}
  t.match(headers, { 'x-user-source': 'sso', 'x-user-roles': 'admin,staff' })
  t.match(headers?.authorization, /^Bearer \S{20,}$/)
  const [, cookie = ''] = [...jar].find(([name]) => name.startsWith('console_flow_')) ?? []
  t.ok(cookie.length > 100 && cookie.length <= 1024, 'a flow has one small cookie')
})

t.test('the callback changes nothing; `finish` takes no other site or browser', async t => {
  const [browser, other] = [visitor(), visitor()]
  const callback = await browser.atProvider((await browser.start('/a')).next, 'alice')
  const { pathname, search } = new URL(callback)
  const grants = provider.grants.length
  const page = await browser.ask(pathname + search, { 'sec-fetch-site': 'cross-site' })
  t.match(page, { status: 200, next: `${oidcPath}/finish${search}` })
  t.strictSame(page.headers.getSetCookie(), [])
  t.equal(page.headers.get('referrer-policy'), 'no-referrer')
  t.equal(page.headers.get('cache-control'), 'no-store')
  for (const site of ['cross-site', 'same-site', 'none', '']) {
    const { status } = await browser.ask(page.next, { 'sec-fetch-site': site })
    t.equal(status, 403, `finish from ${site}`)
  }
  const stranger = await other.comeBack(callback)
  t.match(stranger, { status: 401, text: 'another browser' })
  t.equal(provider.grants.length, grants, 'no code was exchanged')
  // A quote in a query cannot leave its attribute.
  t.notMatch((await browser.ask(`${pathname}?state="><script>`)).text, '<script>')
  t.match(await browser.comeBack(callback), { status: 303, next: '/a' })
  t.match(await browser.comeBack(callback), { status: 303, next: '/a' }, 'back and forth again')
  browser.jar.delete('console_sid')
  t.match(await browser.comeBack(callback), { status: 401 }, 'spent, without a session')
})

t.test('a flow is good at its own source alone, and a browser has eight at most', async t => {
  const browser = visitor()
  const callback = await browser.atProvider((await browser.start()).next, 'alice')
  t.match(await browser.comeBack(callback.replace(oidcPath, otherPath)), { status: 401 })
  for (let tab = 0; tab < 12; tab++) await browser.start(`/tab/${tab}`)
  const flows = [...browser.jar.keys()].filter(name => name.startsWith('console_flow_'))
  t.equal(flows.length, 8)
})

t.test('a landing is a page of the console: 27 others are its first page', async t => {
  const bad = [
    ...['https://evil.example', '//evil.example', '///evil.example', '/\\evil.example', '\\/evil'],
    ...['/%2f/evil.example', '/%2Fevil.example', '/%5cevil.example', '/a//b', 'evil', ''],
    ...['/\tevil', '/%09/evil', '/\n/evil.example', '/%0d%0aset-cookie:a=b', '/a%00b', '/%zz'],
    ...['javascript:alert(1)', 'data:text/html,a', '/..//evil.example', '/.//evil.example'],
    ...['/api/account/logout', '/x/../api/orders', '/api%2forders', '/reports/print'],
    ...[`/${'a'.repeat(500)}`, `/${'搜'.repeat(100)}`]
  ]
  const browser = visitor()
  for (const returnTo of bad) {
    t.match(await browser.signIn('alice', returnTo), { status: 303, next: '/' }, returnTo)
  }
  for (const good of ['/', '/orders', '/a/b?c=//d&e=https://f#g', '/%E4%BD%A0', '/apiary']) {
    t.match(await browser.signIn('alice', good), { status: 303, next: good }, good)
  }
})

t.test('who may not: a claim of `require`, groups by a link, a refusal there', async t => {
  const { bob = {} } = provider.accounts
  bob[staffClaim] = false
  const browser = visitor()
  t.match(await browser.signIn('bob'), { status: 403, text: 'may not use this console' })
  t.match((await browser.start()).next, 'prompt=login', 'another account may')
  const line = await gateway.logged(({ code }) => code === 'login.blocked')
  t.match(line, { reason: `"${staffClaim}" of bob has none` })
  // Amazon Cognito tells a flag as text.
  bob[staffClaim] = 'true'
  t.match(await visitor().signIn('bob'), { status: 303 })
  t.match(await visitor().signIn(''), { status: 401, text: 'not completed' })
  await until('the ledger has all', () => {
    const lines = linesIn(gateway.folder).filter(({ route }) => route === 'login')
    const [accepted, refused] = lines.slice(-2)
    return accepted?.['user'] === 'bob' && refused?.['code'] === 'login.refused'
  })
})

t.test(
  'claims: names with dots, no id that has lost digits, no profile that cannot be written',
  async t => {
    const places = { id: 'uid', username: 'uid', name: 'uid', roles: 'clients.my.app.roles' }
    const user = { ...places, roleMap: {}, profile: ['picture'] }
    const of = (claims: object) => identityOf({ uid: 7, ...claims }, { user, require: {} })
    t.match(of({ picture: [1] }), { id: '7', profile: { picture: [1] }, roles: [] })
    t.match(of({ clients: { 'my': 1, 'my.app': { roles: ['a'] } } }), { roles: ['a'] })
    const picture = JSON.parse('['.repeat(50_000) + ']'.repeat(50_000)) as unknown
    for (const claims of [{ uid: 2 ** 53 }, { uid: true }, { uid: '' }, { picture }]) {
      t.throws(() => of(claims), { code: 'upstream.invalid' })
    }
  }
)

t.test('a provider names only addresses that are safe to open and to read', async t => {
  let settings: object
  const { url: issuer } = await testUpstream(t.after, (...exchange) => {
    json(200, settings)(...exchange)
  })
  const safe = { issuer, authorization_endpoint: issuer, jwks_uri: issuer }
  const read = async (more: object) => {
    settings = { ...safe, ...more }
    return await new Provider({ issuer, clientId: 'console' }).configuration()
  }
  await t.resolves(read({ end_session_endpoint: 'https://sso.example.com/end' }))
  for (const name of ['authorization_endpoint', 'jwks_uri', 'end_session_endpoint']) {
    for (const bad of ['http://sso.example.com', 'javascript://localhost/%0aalert(1)', '/a', 5]) {
      await t.rejects(read({ [name]: bad }), { code: 'upstream.invalid' }, `${name} ${bad}`)
    }
  }
  await t.rejects(read({ jwks_uri: undefined }), { code: 'upstream.invalid' })
})

/** A signed-in browser whose token expires now. */
async function withExpired(t: Test) {
  const browser = visitor()
  t.match(await browser.signIn('alice'), { status: 303 })
  passTime(hour)
  return browser
}

t.test('a token is renewed with the roles of now', async t => {
  const { call } = await withExpired(t)
  const { alice = {} } = provider.accounts
  alice['groups'] = ['staff']
  t.match(await call('/api/orders'), { status: 200 })
  t.equal(backend.seen.at(-1)?.headers['x-user-roles'], 'staff')
  alice['groups'] = ['console-admins', 'staff']
  passTime(hour)
  await call('/api/orders')
  t.equal(backend.seen.at(-1)?.headers['x-user-roles'], 'admin,staff')
  t.strictSame(provider.grants.slice(-2), ['refresh_token', 'refresh_token'])
})

t.test('while the provider is away: 503 only where its token is needed', async t => {
  const { call } = await withExpired(t)
  for (const fault of ['broken', 'page', 500] as const) {
    provider.fault = fault
    t.match((await call('/api/orders')).json, { errorCode: 'upstream.refused' })
    t.match(await call('/api/plain'), { status: 200, json: { ok: 1 } })
    t.match((await call('/api/account/profile')).json, { success: true })
  }
  provider.fault = undefined
  t.match((await call('/api/orders')).json, { ok: 1 })
  for (const fault of ['broken', 'page']) {
    passTime(hour)
    Object.assign(provider, { fault, faultAt: /^\/me/ })
    t.match((await call('/api/orders')).json, { ok: 1 }, 'roles stay without UserInfo')
  }
  Object.assign(provider, { fault: undefined, faultAt: /./ })
})

t.test('a session ends where the provider refuses its token, or its user', async t => {
  const { alice = {} } = provider.accounts
  const ways = {
    'a claim of `require` is gone': () => (alice[staffClaim] = false),
    'its refresh token has expired': () => (provider.clockShift = 25 * hour),
    'it tells of another user': () => (provider.claims = { sub: 'bob' }),
    'it is another issuer': () => (provider.claims = { iss: 'https://sso.example.com' }),
    'its token is for another client': () => (provider.claims = { aud: 'another' })
  }
  for (const [way, change] of Object.entries(ways)) {
    const { call } = await withExpired(t)
    change()
    t.match((await call('/api/orders')).json, { errorCode: 'session.upstream' }, way)
    t.match((await call('/api/session')).json, { errorCode: 'session.upstream' }, way)
    alice[staffClaim] = true
    Object.assign(provider, { clockShift: 0, claims: undefined })
  }
})

t.test('new keys are read at once, but not again and again', async t => {
  const { call } = await withExpired(t)
  provider.rotateKeys()
  t.match((await call('/api/orders')).json, { ok: 1 })
  passTime(60_000)
  provider.rotateKeys()
  t.match(await visitor().signIn('alice'), { status: 303 })
  const reads = () => provider.asked.filter(path => path === '/jwks').length
  const before = reads()
  const back = provider.rotateKeys()
  for (let times = 0; times < 3; times++) t.match(await visitor().signIn('alice'), { status: 502 })
  t.equal(reads(), before)
  back()
})

t.test('a clock that is 90 s off is no matter, one of 66 minutes is told', async t => {
  for (const seconds of [90, -90]) {
    provider.clockShift = seconds * 1000
    t.match(await visitor().signIn('alice'), { status: 303 }, `${seconds} s`)
  }
  provider.clockShift = -66 * 60_000
  const from = gateway.log.length
  t.match(await visitor().signIn('alice'), { status: 502 })
  const { reason } = await gateway.logged(({ path }) => path === `${oidcPath}/finish`, from)
  t.match(reason, 'is its clock, or ours, wrong?')
  provider.clockShift = 0
})

t.test('navigations begin a sign-in; calls, and a posted form, are told to go there', async t => {
  const { ask, signIn, jar } = visitor()
  const start = `${oidcPath}?returnTo=%2Forders%3Fa%3D1`
  t.match(await ask('/orders?a=1'), { status: 302, next: start })
  t.match(await ask('/'), { status: 302, next: `${oidcPath}?returnTo=%2F` })
  const foreign = { 'sec-fetch-site': 'cross-site' }
  t.match(await ask('/orders', foreign), { status: 200, next: '/orders' }, 'from a mail: a hop')
  t.match(await ask(start, foreign), { status: 200, next: start })
  for (const path of ['//evil.example', '///evil.example', '/\\evil.example', '//evil.example/a']) {
    const headers = { ...foreign, 'sec-fetch-dest': 'document', 'accept': 'text/html' }
    const answer = await callOnce(gateway.url, { path, headers })
    t.notMatch(answer.text, 'evil', path)
    t.notMatch(answer.headers.location, /evil/, path)
  }
  for (const dest of ['empty', 'script', 'iframe']) {
    const { status } = await ask('/orders', { 'sec-fetch-dest': dest })
    t.equal(status, 200, dest)
  }
  t.match(JSON.parse((await ask('/api/orders')).text), { showType: 9 })
  t.match(await gateway.attempt('alice'), { status: 200, json: { success: false, showType: 9 } })
  await signIn('alice')
  t.match(await ask('/orders'), { status: 200, text: '<title>console</title>' })
  t.match(await ask('/orders', foreign), { status: 200, next: '/orders' })
  t.notMatch([...jar.values()].join(), 'eyJ', 'no token is in the browser')
})

t.test('logs and ledger hold no code, state, token or verifier', async t => {
  const browser = visitor()
  const callback = await browser.atProvider((await browser.start()).next, 'alice')
  await browser.comeBack(callback)
  await browser.call('/api/orders')
  const token = String(backend.seen.at(-1)?.headers.authorization).slice('Bearer '.length)
  const { searchParams } = new URL(callback)
  const written = JSON.stringify([gateway.log, linesIn(gateway.folder)])
  for (const secret of [searchParams.get('code'), searchParams.get('state'), token]) {
    t.notMatch(written, secret)
  }
})
