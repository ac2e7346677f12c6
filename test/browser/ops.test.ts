/** The operators’ pages in a real browser: live, for everybody, on any screen. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { testBrowser } from '../support/chromium.ts'
import { type TestGateway, testGateway } from '../support/gateway.ts'
import { password } from '../support/sign-in.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { visit } from './visit.ts'

const browser = await testBrowser(undo => t.teardown(undo))

async function start(t: Test): Promise<TestGateway> {
  const upstream = await testUpstream(t.teardown, json(200, { ok: 1 }))
  return await testGateway(t.teardown, {
    gateway: { ops: { role: 'admin' } },
    backend: upstream.url,
    routes: { routes: { orders: {}, admins: { access: { roles: ['admin'] } } } },
    limits: { limits: { few: { by: 'user', max: 3, window: '1h' } } }
  })
}

async function signIn(page: Page): Promise<void> {
  await page.getByLabel('User name').fill('alice')
  await page.getByLabel('Password').fill(password)
  await page.keyboard.press('Enter')
  await page.locator('main#page').waitFor()
}

interface Finding {
  readonly help: string
  readonly nodes: ReadonlyArray<{ readonly html: string; readonly failureSummary?: string }>
}
const axe = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8')

/** Findings of axe-core, all rules, of which best practices are part. */
async function axeFindings(page: Page): Promise<string[]> {
  // The policy of the page forbids inline scripts; evaluate() is no part of the page.
  await page.evaluate(`${axe}; 0`)
  const found = (await page.evaluate('axe.run(document)')) as { violations: readonly Finding[] }
  return found.violations.flatMap(({ help, nodes }) =>
    nodes.map(({ html, failureSummary = '' }) => `${help}: ${html} ${failureSummary}`)
  )
}

const open = async (page: Page, name: string) => {
  await page.getByRole('link', { name, exact: true }).click()
  await page.getByRole('heading', { level: 1, name }).waitFor()
}

t.test('a session that is ended by the popover is dead at once, with the keyboard too', async t => {
  const gateway = await start(t)
  const page = await visit(t, browser, `${gateway.opsUrl}/ops/users`)
  await signIn(page)
  await page.getByText('Nobody who is signed in fits').waitFor()
  const cookie = await gateway.signIn('bob')
  await page.getByRole('link', { name: 'bob' }).waitFor()
  t.pass('the page is live')
  await page.getByRole('button', { name: 'End session' }).click()
  await page.getByRole('button', { name: 'Cancel' }).click()
  t.equal((await gateway.call('/api/orders', { cookie })).status, 200, 'nothing has happened')
  await page.getByRole('button', { name: 'End session' }).focus()
  await page.keyboard.press('Enter')
  const popover = page.locator(':popover-open')
  await popover.getByText('Signs bob out on this device').waitFor()
  await page.waitForTimeout(4000)
  t.ok(await popover.isVisible(), 'the refresh waits while somebody decides')
  await popover.getByRole('button', { name: 'End session' }).click()
  await page.getByText('Done: Closes one session').waitFor()
  t.equal((await gateway.call('/api/orders', { cookie })).status, 401)
})

t.test('axe finds nothing on any page, light and dark; no phone scrolls sideways', async t => {
  const gateway = await start(t)
  await gateway.attempt('w'.repeat(255))
  const cookie = await gateway.signIn('bob')
  for (let count = 0; count < 5; count++) await gateway.call('/api/admins', { cookie })
  await gateway.ops('/ops/api/maintenance', {
    json: { until: new Date(Date.now() + 3_600_000).toISOString(), routes: ['admins'] }
  })
  for (const colorScheme of ['light', 'dark'] as const) {
    const viewport = { width: colorScheme === 'light' ? 390 : 1440, height: 900 }
    const options = { colorScheme, viewport }
    const page = await visit(t, browser, `${gateway.opsUrl}/ops/`, options)
    t.same(await axeFindings(page), [], `${colorScheme}: sign-in`)
    await signIn(page)
    const check = async (name: string) => {
      t.same(await axeFindings(page), [], `${colorScheme}: ${name}`)
      const width = await page.evaluate('document.documentElement.scrollWidth')
      t.ok((width as number) <= viewport.width, `${name} is ${String(width)} px wide`)
      for (const column of await page.locator('th.wide').all()) {
        t.ok(((await column.boundingBox())?.width ?? 0) > 60, `${name}: nothing is squeezed`)
      }
    }
    await check('Overview')
    for (const name of ['Users', 'Limits', 'Config', 'Maintenance', 'Requests']) {
      await open(page, name)
      await check(name)
    }
    await page.getByRole('button', { name: 'Show' }).waitFor()
    await page.locator('tbody a').first().click()
    await page.getByRole('heading', { level: 1, name: /^Request / }).waitFor()
    await check('a request')
    await page.getByRole('link', { name: 'bob', exact: true }).click()
    await page.getByRole('heading', { level: 1, name: 'bob' }).waitFor()
    await check('a user')
    await open(page, 'Maintenance')
    await page.getByRole('button', { name: 'Begin maintenance' }).first().click()
    await page.locator(':popover-open').waitFor()
    await check('an open popover')
  }
})

t.test('a gateway that is gone is said, the last numbers stay; a lost session asks', async t => {
  const gateway = await start(t)
  const page = await visit(t, browser, `${gateway.opsUrl}/ops/`)
  await signIn(page)
  await page.context().clearCookies()
  await page.getByLabel('User name').waitFor()
  await signIn(page)
  await gateway.stop({ noticeMs: 0 })
  await page.getByText('The gateway does not answer').waitFor()
  t.ok(await page.getByRole('heading', { level: 1, name: 'Overview' }).isVisible())
})
