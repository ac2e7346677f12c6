/** The ops page on a real gateway with real traffic. */
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { testBrowser } from '../../support/chromium.ts'
import { type TestGateway, testGateway } from '../../support/gateway.ts'
import { password, signInAt } from '../../support/sign-in.ts'
import { json, testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'
import { axeFindings, openPanel, visitOps } from '../../browser/ops-page.ts'

const browser = await testBrowser(undo => t.teardown(undo))

async function start(t: Test, answer = json(200, { ok: 1 })) {
  const upstream = await testUpstream(t.teardown, answer)
  const files = {
    gateway: { ops: { role: 'admin' }, audit: { key: '${AUDIT_KEY}' } },
    routes: {
      upstreams: { backend: { url: upstream.url } },
      routes: {
        orders: { path: '/api/orders', upstream: 'backend', rewrite: '/orders' },
        admins: { path: '/api/admins', upstream: 'backend', access: { roles: ['admin'] } }
      }
    },
    limits: { limits: { 'signed-in': { by: 'user', max: 5000, window: '1m' } } }
  }
  const gateway = await testGateway(t.teardown, files, { AUDIT_KEY: 'k'.repeat(32) })
  return { gateway, upstream }
}

async function signInOps(t: Test, gateway: TestGateway): Promise<Page> {
  const page = await visitOps(t, browser, `${gateway.opsUrl}/ops/`)
  await page.getByLabel('User name').fill('alice')
  await page.getByLabel('Password').fill(password)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor()
  return page
}

/** One request after the other, until the test ends. */
function traffic(t: Test, gateway: TestGateway, cookie: string): void {
  const stopped = new AbortController()
  t.teardown(() => stopped.abort())
  const send = async () => {
    while (!stopped.signal.aborted) await gateway.call('/api/orders', { cookie })
  }
  void send().catch(() => {})
}

t.test('Now: rates, routes and upstreams of real traffic; charts move', async t => {
  const { gateway } = await start(t)
  const page = await signInOps(t, gateway)
  traffic(t, gateway, await gateway.signIn('bob'))
  await until('the rate is shown', async () => {
    const rate = await page.locator('.figure dd').first().textContent()
    return Number(rate?.replaceAll(',', '')) > 1
  })
  await page.getByRole('button', { name: 'orders' }).waitFor()
  const image = async () =>
    await page.evaluate('document.querySelector(".plot canvas").toDataURL()')
  const before = await image()
  await until('the chart moves', async () => (await image()) !== before)
  await page.getByRole('table', { name: 'Upstreams' }).getByText('backend').waitFor()
  t.same(await axeFindings(page), [])
})

t.test('Requests: why somebody got a 403, with what to do about it', async t => {
  const { gateway } = await start(t)
  const cookie = await gateway.signIn('bob')
  const { status, headers } = await gateway.call('/api/admins', { cookie })
  t.equal(status, 403)
  const page = await signInOps(t, gateway)
  await openPanel(page, 'requests')
  await page.getByLabel('Status').selectOption('403')
  await page.locator('tbody .link').first().click()
  const timeline = page.getByRole('complementary', { name: 'Timeline' })
  await timeline.getByText('route.forbidden').waitFor()
  await timeline.getByText('The user has none of the roles').waitFor()
  await timeline.getByText(headers.get('x-request-id') ?? 'no id').waitFor()
  await timeline.getByText('bob').waitFor()
  t.same(await axeFindings(page), [])
})

t.test('Sessions: a session that is closed here is dead at once; lockouts are empty', async t => {
  const { gateway } = await start(t)
  const cookie = await gateway.signIn('bob')
  t.equal((await gateway.call('/api/orders', { cookie })).status, 200)
  const page = await signInOps(t, gateway)
  await openPanel(page, 'sessions')
  await page.getByText('Nobody is locked out.').waitFor()
  await page.getByRole('button', { name: 'Close all sessions of bob' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('1 session ends').waitFor()
  t.equal((await gateway.call('/api/orders', { cookie })).status, 200, 'nothing has happened yet')
  await dialog.getByRole('button', { name: 'Close all of the user' }).click()
  await page.getByText('Close all of the user: Done.').waitFor()
  t.equal((await gateway.call('/api/orders', { cookie })).status, 401)
  await page.getByText('Nobody is signed in.').waitFor()
})

/** A gateway whose console users sign in at a back-end, and its operators by the users file. */
async function startWithUsers(t: Test, names: readonly string[]): Promise<TestGateway> {
  const backend = await testUpstream(t.teardown, (_request, response, { body }) => {
    const { username } = JSON.parse(body.toString()) as { readonly username: string }
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ id: `id of ${username}` }))
  })
  const { gateway: atBackend, routes } = signInAt(backend.url, {
    body: { username: '{username}', password: '{password}' }
  })
  const sources = [
    { kind: 'users-file', file: 'users.yaml', decides: false },
    ...atBackend.login.sources
  ]
  const identity = { prefix: true }
  const files = { gateway: { ops: { role: 'admin' }, login: { sources }, identity }, routes }
  const gateway = await testGateway(t.teardown, files)
  for (const name of names) await gateway.signIn(name)
  return gateway
}

t.test('Sessions: of 300 users any is found by name, and more are listed', async t => {
  const names = Array.from({ length: 300 }, (_, index) => `user-${1000 + index}`)
  const gateway = await startWithUsers(t, names)
  const page = await signInOps(t, gateway)
  await openPanel(page, 'sessions')
  const card = page.getByRole('region', { name: 'Signed in' })
  await card.getByText('The first 200 sessions of 300 users, by name').waitFor()
  await page.getByRole('searchbox').fill('USER-1299')
  await card.getByRole('row').filter({ hasText: 'user-1299' }).waitFor()
  t.equal(await card.getByRole('table').getAttribute('aria-rowcount'), '2')
  await page.getByRole('button', { name: 'Close this session of user-1299' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Close the session' }).click()
  await card.getByText('No session matches').waitFor()
  await page.getByRole('searchbox').fill('')
  await card.getByRole('button', { name: 'Show more' }).click()
  await until('all are listed', async () => {
    return (await card.getByRole('table').getAttribute('aria-rowcount')) === '300'
  })
  t.equal(await card.getByRole('button', { name: 'Show more' }).count(), 0)
  t.same(await axeFindings(page), [])
})

t.test('Config: a broken file shows its fault with file and line, and what runs stays', async t => {
  const { gateway } = await start(t)
  const page = await signInOps(t, gateway)
  await openPanel(page, 'config')
  await page.getByText('The files hold what runs.').waitFor()
  appendFileSync(join(gateway.folder, 'limits.yaml'), 'unknown: {}\n')
  await gateway.reload('operator')
  await page
    .getByRole('alert')
    .getByText(/limits\.yaml:\d+.*unknown/)
    .first()
    .waitFor()
  t.same(await axeFindings(page), [])
})

t.test('Limits: the highest use, and who is near the number', async t => {
  const { gateway } = await start(t)
  const cookie = await gateway.signIn('bob')
  for (let count = 0; count < 30; count++) await gateway.call('/api/orders', { cookie })
  const page = await signInOps(t, gateway)
  await openPanel(page, 'limits')
  await page.locator('td').getByText('5,000 / 1 min').waitFor()
  await page
    .locator('td')
    .getByText(/^bob \d+$/)
    .waitFor()
})

t.test('Maintenance: begun here, it closes routes; ended here, it opens them', async t => {
  const { gateway } = await start(t)
  const cookie = await gateway.signIn('bob')
  const page = await signInOps(t, gateway)
  await openPanel(page, 'maintenance')
  await page.getByText('Without Redis').waitFor()
  await page.getByLabel('Message for users').fill('Back at noon.')
  await page.getByRole('button', { name: 'Begin maintenance' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('2 routes').waitFor()
  await dialog.getByRole('button', { name: 'Begin maintenance' }).click()
  await page.getByText('Back at noon.').waitFor()
  const closed = await gateway.call('/api/orders', { cookie })
  t.equal(closed.status, 503)
  t.match(closed.text, 'Back at noon.')
  await page.getByRole('button', { name: 'End maintenance' }).click()
  await dialog.getByRole('button', { name: 'End maintenance' }).click()
  await page.getByText('Operators closed nothing.').waitFor()
  t.equal((await gateway.call('/api/orders', { cookie })).status, 200)
})

t.test('a back-end that fails turns red', async t => {
  const { gateway, upstream } = await start(t)
  const cookie = await gateway.signIn('bob')
  const page = await signInOps(t, gateway)
  traffic(t, gateway, cookie)
  const table = page.getByRole('table', { name: 'Upstreams' })
  await table.locator('.pill.ok').first().waitFor()
  await upstream.close()
  await until('the error share is red', async () => {
    const tone = await page.locator('.figure').nth(1).getAttribute('class')
    return tone?.includes('bad') === true
  })
})

t.test('signing out ends the session, and the page asks again', async t => {
  const { gateway } = await start(t)
  const page = await signInOps(t, gateway)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('heading', { name: 'Sign in to operate the gateway' }).waitFor()
  await page.reload()
  await page.getByLabel('User name').waitFor()
  await page.getByLabel('User name').fill('bob')
  await page.getByLabel('Password').fill(password)
  await page.keyboard.press('Enter')
  await page.getByRole('alert').waitFor()
  t.same(await axeFindings(page), [], 'bob is no operator')
})

t.test('a sign-in that is refused says why', async t => {
  const { gateway } = await start(t)
  const page = await visitOps(t, browser, `${gateway.opsUrl}/ops/`)
  const refusal = async (username: string, secret: string, text: string) => {
    await page.getByLabel('User name').fill(username)
    await page.getByLabel('Password').fill(secret)
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText(text).waitFor()
  }
  await refusal('alice', 'wrong', 'The user name or the password is wrong.')
  const unnamed = await testGateway(t.teardown)
  await page.goto(`${unnamed.opsUrl}/ops/`)
  await refusal('alice', password, 'ops.role is not set')
})

t.test('hostile paths, agents and names of real requests stay text', async t => {
  const { gateway } = await start(t)
  const hostile = '<img src=x onerror=alert(1)>'
  const headers = { 'user-agent': hostile }
  const credentials = { username: 'bob', password }
  await gateway.call('/api/auth/admin/login', { json: credentials, headers })
  await gateway.call('/api/auth/admin/login', { json: { ...credentials, username: hostile } })
  await gateway.call(`/api/${encodeURIComponent(hostile)}`)
  const page = await signInOps(t, gateway)
  const injected = async () => await page.evaluate('document.querySelectorAll("img").length')
  for (const [name, text] of [
    ['requests', 'onerror'],
    ['sessions', hostile]
  ] as const) {
    await openPanel(page, name)
    await page.locator('main').getByText(text).first().waitFor()
    t.equal(await injected(), 0, name)
  }
})
