/** Sign-in of operators at an OpenID provider. */
import t, { type Test } from 'tap'
import { audit, testGateway } from '../../support/gateway.ts'
import { linesIn } from '../../support/ledger.ts'
import { oidcSource, opsOidcPath, testProvider } from '../../support/oidc-provider.ts'
import { oidcVisitor } from '../../support/oidc-visitor.ts'
import { callOps, textOf } from '../../support/operator.ts'
import { testRedis } from '../../support/redis.ts'

async function start(t: Test, more: object = {}) {
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
  const { visit, opsUrl, acts, ops } = await start(t)
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
  const { visit, acts, log, url, provider } = await start(t)
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
  const { visit, provider, log } = await start(t, { redis: { url: redis.url } })
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

t.end()
