/** Sign-in of operators, by whom and by what, and the ends of their sessions. */
import t, { type Test } from 'tap'
import { audit, noLockout, password, testGateway, writeConfig } from '../../support/gateway.ts'
import { linesIn } from '../../support/ledger.ts'
import { oidcSource, opsOidcPath, testProvider } from '../../support/oidc-provider.ts'
import { oidcVisitor } from '../../support/oidc-visitor.ts'
import { callOps, postForm, signInToOps, textOf } from '../../support/operator.ts'
import { testSecret } from '../../support/ops.ts'
import { testRedis } from '../../support/redis.ts'
import { json, testUpstream } from '../../support/upstream.ts'
import { hashOf } from '../../support/users.ts'

const me = '/ops/api/me'
const withRole = { gateway: { ops: { role: 'admin' } } }

async function post(opsUrl: string, fields: Record<string, string>, path = '/ops/') {
  const answer = await postForm(opsUrl, { act: 'sign-in', ...fields }, {}, path)
  return { ...answer, cookie: answer.headers['set-cookie']?.[0]?.split(';', 1)[0] }
}

const statusAt = async (opsUrl: string, cookie: string | undefined) =>
  (await callOps(opsUrl, me, { headers: { cookie } })).status

const shared = await testGateway(t.teardown, withRole)

t.test('a user of a users file with ops.role signs in, sees, acts and signs out', async t => {
  const { opsUrl, log, signIn } = shared
  await signIn('bob')
  const { status, json: operator, cookie, headers } = await signInToOps(opsUrl)
  t.equal(status, 303)
  t.match(operator, { name: 'alice', via: 'session', source: 'users-file' })
  t.ok(operator.until > Date.now() + 3_500_000 && operator.until <= Date.now() + 3_600_000)
  t.match(headers['set-cookie']?.[0], /^console_ops=[\w.-]+; Path=\/; HttpOnly; SameSite=Strict$/)
  t.match((await callOps(opsUrl, me, { headers: { cookie } })).json, { name: 'alice' })
  const readiness = await callOps(opsUrl, '/readyz', { headers: { cookie } })
  t.match(readiness.json, { sessions: 'in this process' })
  const act = { json: { user: 'bob' }, headers: { cookie } }
  t.match((await callOps(opsUrl, '/ops/api/sessions/close', act)).json, { closed: 1 })
  const out = await postForm(opsUrl, { act: 'sign-out' }, { cookie })
  t.match(out, { status: 303, headers: { 'set-cookie': [/^console_ops=;.*Max-Age=0$/] } })
  const after = await callOps(opsUrl, me, { headers: { cookie } })
  t.match(after, { status: 401, json: { code: 'ops.session' } })
  const secrets = [password, cookie.split('=')[1] ?? '']
  for (const secret of secrets) t.notOk(JSON.stringify(log).includes(secret))
})

t.test('operators have the role, and come from a source that ops.sources names', async t => {
  const backend = await testUpstream(t.after, (request, response, seen) => {
    const { username, password: given } = JSON.parse(seen.body.toString()) as Record<string, string>
    const roles = [username === 'olga' ? 'admin' : 'user']
    json(given === password ? 200 : 401, { id: `${username}-id`, roles })(request, response, seen)
  })
  const startWith = async (source: string) =>
    await testGateway(t.after, {
      gateway: {
        ops: { role: 'admin', sources: [source] },
        login: { sources: { people: { kind: 'users-file', file: 'users.yaml' } } },
        identity: { prefix: true }
      },
      backend: backend.url,
      source: { user: { id: 'id', roles: 'roles' } }
    })
  const { opsUrl, log } = await startWith('b')
  const { cookie, ...signedIn } = await signInToOps(opsUrl, 'olga')
  t.match(signedIn, { status: 303, json: { name: 'olga', source: 'b' } })
  t.equal(await statusAt(opsUrl, cookie), 200)
  t.match(await signInToOps(opsUrl, 'tim'), { status: 403, json: { code: 'ops.role' } })
  const refused = { status: 401, json: { code: 'login.refused' } }
  t.match(await signInToOps(opsUrl, 'olga', { password: 'wrong' }), refused)
  t.notOk(JSON.stringify(log).includes(password))
  const asked = backend.seen.length
  const without = await startWith('people')
  t.match(await signInToOps(without.opsUrl, 'olga'), refused, 'of a source that is not named')
  t.match(await signInToOps(without.opsUrl), { status: 303, json: { source: 'people' } })
  t.equal(backend.seen.length, asked, 'and the back-end hears of no guess')
})

t.test('guesses are counted apart from the console’s', async t => {
  const account = { failures: 3, every: '1m' }
  const { opsUrl, attempt, signIn, ops, opsJson } = await testGateway(t.after, {
    ...withRole,
    limits: { lockout: { ...noLockout, account } }
  })
  for (let n = 0; n < 5; n++) await attempt('alice', { password: 'wrong' })
  t.equal((await attempt('alice')).status, 429, 'the console')
  t.equal((await signInToOps(opsUrl)).status, 303, 'the page')
  for (let n = 0; n < 5; n++) await signInToOps(opsUrl, 'bob', { password: 'wrong' })
  t.match(await signInToOps(opsUrl, 'bob'), {
    status: 429,
    json: { code: 'login.locked' },
    headers: { 'retry-after': /^\d+$/ }
  })
  t.ok(await signIn('bob'))
  t.match(await opsJson('lockouts'), {
    lockouts: [{ account: 'alice' }, { kind: 'account at the operators’ page', account: 'bob' }]
  })
  await ops('/ops/api/lockouts/lift', { json: { account: 'bob' } })
  t.match(await signInToOps(opsUrl, 'bob'), { status: 403, json: { code: 'ops.role' } })
})

t.test('the session ends with a changed password, a lost role, or the user', async t => {
  const user = { password: hashOf(password), roles: ['admin'] }
  const changes = {
    'another-password': { ...user, password: hashOf('other') },
    'without-the-role': { ...user, roles: ['user'] },
    'disabled': { ...user, disabled: true },
    'as-before': user
  }
  const names = Object.keys(changes)
  const users = Object.fromEntries(names.map(name => [name, user]))
  const { opsUrl, folder, ops } = await testGateway(t.after, { ...withRole, users: { users } })
  const cookies: string[] = []
  for (const name of names) cookies.push((await signInToOps(opsUrl, name)).cookie)
  const statuses = async () => await Promise.all(cookies.map(each => statusAt(opsUrl, each)))
  t.same(await statuses(), [200, 200, 200, 200])
  writeConfig(folder, 'users.yaml', { users: changes })
  await ops('/ops/api/reload', { json: { yes: true } })
  t.same(await statuses(), [401, 401, 401, 200])
})

t.test('without ops.role the form asks for the secret, whose guesses are counted', async t => {
  const { opsUrl } = await testGateway(t.after, {
    limits: { lockout: { accountAndAddress: 'off', account: 'off', address: { failures: 3 } } }
  })
  const byName = { status: 403, cookie: '', json: { error: /ops\.role is not set/ } }
  t.match(await signInToOps(opsUrl), byName, 'nobody signs in by name')
  const page = textOf((await callOps(opsUrl, '/ops/', {})).text)
  t.match(page, /Operators’ secret.*console-gateway ops/)
  t.notMatch(page, /User name/)
  const right = await post(opsUrl, { secret: testSecret })
  t.match(right, { status: 303, headers: { location: '/ops/' } })
  const { json } = await callOps(opsUrl, me, { headers: { cookie: right.cookie } })
  t.match(json, { name: 'operator', via: 'session' })
  const guess = async () => (await post(opsUrl, { secret: 'a guess' })).status
  t.same([await guess(), await guess(), await guess(), await guess()], [401, 401, 401, 429])
  t.equal((await post(opsUrl, { secret: testSecret })).status, 429)
  t.equal(await statusAt(opsUrl, right.cookie), 200, 'who is signed in stays so')
})

t.test('where config has neither role nor secret, the form says how to open the page', async t => {
  const { opsUrl } = await testGateway(t.after, { gateway: { ops: { secret: '${NONE:-}' } } })
  const { text } = await callOps(opsUrl, '/ops/', {})
  t.match(textOf(text), /Run console-gateway ops where the gateway runs/)
  t.notMatch(text, /<input/)
  t.equal((await post(opsUrl, { secret: '' })).status, 401)
  t.equal((await post(shared.opsUrl, { secret: testSecret })).status, 401, 'nor with a role')
})

t.test('a link opens the page once, and not when it is old', async t => {
  const { opsUrl, opsLink, opsJson } = shared
  const open = async (link: string, method = 'GET') =>
    await callOps(opsUrl, link.slice(opsUrl.length), { method })
  const link = opsLink(60_000)
  t.equal((await open(link, 'HEAD')).status, 401, 'a program that looks at links uses none up')
  const opened = await open(link)
  t.match(opened, { status: 303, headers: { location: '/ops/' } })
  const cookie = opened.headers['set-cookie']?.[0]?.split(';', 1)[0]
  const { json } = await callOps(opsUrl, me, { headers: { cookie } })
  t.match(json, { name: 'local', via: 'session' })
  for (const each of [link, opsLink(0), `${opsUrl}/ops/link/guessed`]) {
    const again = await open(each)
    t.match(again, {
      status: 303,
      headers: { 'location': '/ops/?link=over', 'set-cookie': undefined }
    })
    const { text } = await callOps(opsUrl, '/ops/?link=over', {})
    t.match(textOf(text), /used before, or is too old.*console-gateway ops/)
  }
  t.equal((await post(opsUrl, { username: 'alice', password: 'x' }, '/ops/?link=over')).status, 401)
  const more = await callOps(opsUrl, '/ops/api/link', { json: {}, headers: { cookie } })
  t.match(more, { status: 401 }, 'no session makes another')
  t.match(await opsJson('link', {}), {
    url: new RegExp(`^${opsUrl}/ops/link/`)
  })
  t.match(JSON.stringify(shared.log), '"act":"ops.link","operator":"operator"')
  t.notMatch(JSON.stringify(shared.log), '/ops/link/', 'which no log has')
})

t.test('a sign-out ends a stolen cookie at all replicas within a second', async t => {
  const { url: redis } = await testRedis(t.after)
  const files = { gateway: { ops: { role: 'admin' }, audit }, redis }
  const replica = async () => await testGateway(t.after, files)
  const [one, two] = [await replica(), await replica()]
  const statuses = async (cookie: string) => [
    await statusAt(one.opsUrl, cookie),
    await statusAt(two.opsUrl, cookie)
  ]
  const { cookie: stolen } = await signInToOps(one.opsUrl)
  const { cookie } = await signInToOps(two.opsUrl)
  t.same(await statuses(stolen), [200, 200])
  await postForm(one.opsUrl, { act: 'sign-out' }, { cookie })
  for (const each of [stolen, cookie]) t.same(await statuses(each), [401, 401])
  const { cookie: next } = await signInToOps(two.opsUrl)
  t.same(await statuses(next), [200, 200])
  const acts = linesIn(one.folder).filter(({ act }) => act !== undefined)
  t.match(acts, [
    { act: 'ops.sign-in', operator: 'alice', outcome: 'done' },
    { act: 'ops.sign-out', operator: 'alice', outcome: 'done' }
  ])
  const three = await replica()
  t.equal(await statusAt(three.opsUrl, stolen), 401, 'a new replica knows, too')
  t.equal(await statusAt(three.opsUrl, next), 200)
})

t.test('a user whom an operator blocks is none any more, and does not become one', async t => {
  const { opsUrl, ops } = shared
  const { cookie } = await signInToOps(opsUrl)
  t.equal((await ops('/ops/api/users/block', { json: { name: 'alice' } })).status, 200)
  t.equal(await statusAt(opsUrl, cookie), 401)
  t.match(await signInToOps(opsUrl), { status: 403, json: { code: 'ops.role' } })
  await ops('/ops/api/users/unblock', { json: { name: 'alice' } })
  t.equal(await statusAt(opsUrl, cookie), 200)
})

async function startWithProvider(t: Test, more: object = {}) {
  const provider = await testProvider(t.after)
  const config = {
    ops: { role: 'admin', sources: [oidcSource] },
    login: { sources: { [oidcSource]: provider.config() } },
    audit,
    ...more
  }
  const gateway = await testGateway(t.after, { gateway: config }, provider.environment)
  provider.register(gateway.url, gateway.opsUrl)
  const acts = () => linesIn(gateway.folder).filter(({ act }) => act !== undefined)
  /** A browser, and its way from the sign-in page to where the provider sends it. */
  const visit = () => {
    const browser = oidcVisitor(() => gateway.opsUrl, provider)
    const toCallback = async (account: string, page = '/ops/') => {
      const { text } = await browser.ask(page)
      const [, href = ''] = /<a class="button" href="([^"]*)"/.exec(text) ?? []
      return await browser.atProvider((await browser.ask(href)).next, account)
    }
    return { ...browser, toCallback }
  }
  return { ...gateway, provider, acts, visit }
}

t.test('an operator signs in at a provider, for the page that was asked for', async t => {
  const { visit, opsUrl, acts, ops } = await startWithProvider(t)
  const { ask, jar, toCallback, comeBack } = visit()
  const page = await ask('/ops/')
  t.match(textOf(page.text), /Sign in with sso Or run console-gateway ops/)
  t.notMatch(page.text, /<input/, 'no source takes passwords')
  const { next } = await ask(opsOidcPath)
  t.equal(new URL(next).searchParams.get('prompt'), 'login')
  const callback = await toCallback('alice', '/ops/users?search=bob')
  const hop = await ask(callback, { 'sec-fetch-site': 'cross-site' })
  t.equal(hop.status, 200, 'changes nothing')
  t.match(await comeBack(callback), { status: 303, next: '/ops/users?search=bob' })
  const headers = { cookie: `console_ops=${jar.get('console_ops')}` }
  const { json } = await callOps(opsUrl, '/ops/api/me', { headers })
  t.match(json, { name: 'alice', via: 'session', source: oidcSource })
  t.match(acts(), [{ act: 'ops.sign-in', operator: 'alice', outcome: 'done' }])
  t.equal((await comeBack(callback)).status, 303, 'a reload of the last address')
  await ops('/ops/api/users/block', { json: { name: 'alice' } })
  t.equal((await callOps(opsUrl, '/ops/api/me', { headers })).status, 401, 'blocked')
})

t.test('who has not the role is refused by name, whoever did not begin it without', async t => {
  const { visit, acts, log, url, provider } = await startWithProvider(t)
  const bob = visit()
  const refused = await bob.comeBack(await bob.toCallback('bob'))
  t.match(refused, { status: 403, text: /action="\/ops\/".*role="alert"/s })
  t.notOk(bob.jar.has('console_ops'))
  const code = 'ops.role'
  t.match(acts(), [{ act: 'ops.sign-in', operator: 'bob', outcome: 'failed', code }])
  t.ok(log.some(({ event, user }) => event === 'ops.login.refused' && user === 'bob'))

  const alice = visit()
  const callback = await alice.toCallback('alice')
  const other = await visit().comeBack(callback)
  t.match(other, { status: 401, text: /begun in another browser/ })
  const finish = callback.replace('/callback?', '/finish?')
  for (const site of ['cross-site', 'same-site', 'none']) {
    t.equal((await alice.ask(finish, { 'sec-fetch-site': site })).status, 403, site)
  }
  t.equal((await alice.comeBack(callback)).status, 303)
  alice.jar.delete('console_ops')
  t.match(await alice.comeBack(callback), { status: 401, text: /complete already/ }, 'spent')

  // Browsers send the cookies of one port to all others of the host.
  const user = oidcVisitor(() => url, provider)
  const ofConsole = new URL(await user.atProvider((await user.start()).next, 'alice'))
  const guest = visit()
  for (const [name, value] of user.jar) guest.jar.set(name, value)
  const crossed = await guest.ask(`${opsOidcPath}/finish${ofConsole.search}`)
  t.match(crossed, { status: 401, text: /begun in another browser/ }, 'a flow of the console')
  t.equal(acts().length, 2, 'nobody else was named')
})

t.test('a provider or a Redis that is away', async t => {
  const redis = await testRedis(t.after)
  const { visit, provider, log } = await startWithProvider(t, { redis: { url: redis.url } })
  const { toCallback, comeBack } = visit()
  const callback = await toCallback('alice')
  provider.fault = 503
  t.equal((await comeBack(callback)).status, 503)
  t.match(log.find(({ event }) => event === 'ops.login.refused')?.reason, /the OpenID provider/)
  provider.fault = undefined
  const next = await toCallback('alice')
  await redis.kill()
  t.equal((await comeBack(next)).status, 303, 'operators get in without Redis')
})
