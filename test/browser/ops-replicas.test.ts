/** The ops page of one replica with two workers, beside another replica on the same Redis. */
import t, { type Test } from 'tap'
import { testBrowser } from '../support/chromium.ts'
import { start } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { testRedis } from '../support/redis.ts'
import { password } from '../support/sign-in.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'
import { openPanel, visitOps } from './ops-page.ts'

const browser = await testBrowser(undo => t.teardown(undo))
const environment = { SESSION_SECRET: 's'.repeat(32) }

async function startReplicas(t: Test) {
  const { url: backend } = await testUpstream(t.after)
  const redis = await testRedis(t.after)
  const common = {
    redis: { url: redis.url, commandTimeout: '20s', connectTimeout: '20s' },
    session: { secrets: ['${SESSION_SECRET}'] }
  }
  const routes = {
    upstreams: { backend: { url: backend } },
    routes: { orders: { path: '/api/orders', upstream: 'backend' } }
  }
  const [port, opsPort] = [await freePort(), await freePort()]
  const folder = await configFolder({
    gateway: {
      ...common,
      server: { listen: `127.0.0.1:${port}`, workers: 2 },
      ops: { listen: `127.0.0.1:${opsPort}`, role: 'admin' }
    },
    routes
  })
  const several = start(t.after, folder, environment)
  const gateway = { ...common, ops: { role: 'admin' } }
  const other = await testGateway(t.after, await configFolder({ gateway, routes }), environment)
  await several.says('with 2 workers')
  const opsUrl = `http://127.0.0.1:${opsPort}`
  await until('ready', async () => (await fetch(`${opsUrl}/readyz`)).status === 200)
  return { opsUrl, other }
}

t.test('what the page shows and does reaches both replicas and both workers', async t => {
  const { opsUrl, other } = await startReplicas(t)
  const page = await visitOps(t, browser, `${opsUrl}/ops/`)
  await page.getByLabel('User name').fill('alice')
  await page.getByLabel('Password').fill(password)
  await page.keyboard.press('Enter')
  const rows = (table: string) => page.getByRole('table', { name: table }).locator('tbody tr')
  await rows('Processes of this replica').nth(1).waitFor()
  t.match(await rows('Processes of this replica').allTextContents(), [/Worker 1/, /Worker 2/])
  await until('both replicas are shown', async () => (await rows('Replicas').count()) === 2)
  t.match((await rows('Replicas').allTextContents()).join(), /this one/)

  const cookie = await other.signIn('bob')
  const { status, headers } = await other.call('/api/orders', { cookie })
  t.equal(status, 200)
  await openPanel(page, 'requests')
  const button = page.getByRole('button', { name: 'Timeline of /api/orders' })
  await button.first().click()
  const timeline = page.getByRole('complementary', { name: 'Timeline' })
  await timeline.getByText(headers.get('x-request-id') ?? 'no id').waitFor()

  await openPanel(page, 'sessions')
  await page.getByRole('button', { name: 'Close all sessions of bob' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('1 session ends').waitFor()
  await dialog.getByRole('button', { name: 'Close all of the user' }).click()
  await page.getByText('Close all of the user: Done.').waitFor()
  const doneAt = performance.now()
  await until('it is dead at the other replica', async () => {
    return (await other.call('/api/orders', { cookie })).status === 401
  })
  const ms = performance.now() - doneAt
  t.comment(`dead at the other replica after ${Math.round(ms)} ms`)
  t.ok(ms < 1000)
})
