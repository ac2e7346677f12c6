/** Every panel of the ops page: axe-core, hostile texts, acts, and the keyboard alone. */
import type { Page } from 'playwright-core'
import t from 'tap'
import { testBrowser } from '../../support/chromium.ts'
import { until } from '../../support/until.ts'
import { fakeOps } from './ops-fake.ts'
import { axeFindings, openPanel, visitOps } from '../../browser/ops-page.ts'

const browser = await testBrowser(undo => t.teardown(undo))

/** Each panel, and a text that is there when its data are. */
const panels = {
  now: 'backend',
  requests: '/api/orders',
  sessions: 'alice',
  limits: 'signed-in',
  config: 'routes.orders.timeout: 3s → 5s',
  maintenance: 'olivia'
}

async function showPanel(page: Page, name: string, text: string): Promise<void> {
  await openPanel(page, name)
  await page.locator('main').getByText(text).first().waitFor()
}

for (const colorScheme of ['light', 'dark'] as const) {
  t.test(`axe-core has no finding: ${colorScheme}`, async t => {
    const fake = await fakeOps(undo => t.teardown(undo))
    const page = await visitOps(t, browser, `${fake.url}/ops/`, { colorScheme })
    for (const [name, text] of Object.entries(panels)) {
      await showPanel(page, name, text)
      t.same(await axeFindings(page), [], name)
    }
    await openPanel(page, 'requests')
    await page.locator('tbody .link').nth(7).click()
    await page.locator('.waterfall li').first().waitFor()
    t.same(await axeFindings(page), [], 'timeline')
    await openPanel(page, 'sessions')
    await page.locator('.row-acts button').first().click()
    await page.locator('.effect li').first().waitFor()
    t.same(await axeFindings(page), [], 'confirmation')
  })
}
t.test('no panel is wider than a phone', async t => {
  const fake = await fakeOps(undo => t.teardown(undo))
  const viewport = { width: 360, height: 740 }
  const page = await visitOps(t, browser, `${fake.url}/ops/`, { viewport })
  for (const [name, text] of Object.entries(panels)) {
    await showPanel(page, name, text)
    t.equal(await page.evaluate('document.documentElement.scrollWidth'), 360, name)
    t.same(await cutHeads(page), [], name)
  }
})

t.test('no head of a column is cut on a laptop', async t => {
  const fake = await fakeOps(undo => t.teardown(undo))
  const viewport = { width: 1280, height: 800 }
  const page = await visitOps(t, browser, `${fake.url}/ops/`, { viewport })
  for (const [name, text] of Object.entries(panels)) {
    await showPanel(page, name, text)
    t.same(await cutHeads(page), [], name)
  }
})

const cutHeads = async (page: Page) =>
  await page.evaluate(`[...document.querySelectorAll('th')]
    .filter(head => head.scrollWidth > head.clientWidth + 1)
    .map(head => head.textContent)`)

const hostile =
  '<img src=x onerror=alert(1)><script>alert(2)</script>"\'><svg onload=alert(3)>' +
  'javascript:alert(4)\u202e{{7*7}}${7*7}'

t.test('hostile names, paths, agents and messages stay text in every panel', async t => {
  const fake = await fakeOps(undo => t.teardown(undo), { text: hostile })
  const page = await visitOps(t, browser, `${fake.url}/ops/`)
  const injected = async () =>
    await page.evaluate('document.querySelectorAll("img, svg[onload], main script, iframe").length')
  for (const name of Object.keys(panels)) {
    await showPanel(page, name, 'onerror=alert(1)')
    t.equal(await injected(), 0, name)
  }
  await openPanel(page, 'requests')
  await page.locator('tbody .link').nth(7).click()
  await page.locator('.waterfall').getByText('onerror').first().waitFor()
  t.equal(await injected(), 0, 'timeline')
  await openPanel(page, 'sessions')
  await page.locator('.row-acts button').first().click()
  await page.getByRole('dialog').getByText('onerror').waitFor()
  await page.keyboard.press('Escape')
  t.equal(await injected(), 0, 'dialog')
  t.equal(await page.evaluate('document.title.includes("49")'), false)
})

t.test('an act says its effect in numbers and how it is taken back, before it is run', async t => {
  const fake = await fakeOps(undo => t.teardown(undo))
  const page = await visitOps(t, browser, `${fake.url}/ops/`)
  await openPanel(page, 'sessions')
  const dialog = page.getByRole('dialog')
  const closeBob = page.getByRole('button', {
    name: 'Close all sessions of bob',
    exact: true
  })
  await closeBob.click()
  await dialog.getByText('3 sessions end').waitFor()
  await dialog.getByText('1 user is affected').waitFor()
  await dialog.getByText('People sign in again').waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  t.same(fake.acts, [], 'nothing was run')
  t.equal(await page.evaluate('document.activeElement.ariaLabel'), 'Close all sessions of bob')
  await closeBob.click()
  await dialog.getByRole('button', { name: 'Close all of the user' }).click()
  await page.getByRole('status').filter({ hasText: 'Close all of the user: Done.' }).waitFor()
  t.same(fake.acts, [
    { path: 'sessions/close', body: { user: '2', by: 'id', source: 'users-file' } }
  ])
})

t.test('a lockout is lifted of the account or the address that it is of', async t => {
  const fake = await fakeOps(undo => t.teardown(undo), { effect: { lockouts: 1 } })
  const page = await visitOps(t, browser, `${fake.url}/ops/#/sessions`)
  await page.getByText('this page').first().waitFor()
  await page.getByText('trudy · 203.0.113.8').waitFor()
  for (const locked of ['mallory', 'trudy', '203.0.113.9', '2001:db8::']) {
    await page.getByRole('button', { name: `Lift the lockout of ${locked}` }).click()
    await page.getByRole('dialog').getByText('1 lockout is lifted').waitFor()
    await page.getByRole('dialog').getByRole('button', { name: 'Lift the lockout' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  t.same(
    fake.acts.map(({ body }) => body),
    [
      { account: 'mallory' },
      { account: 'trudy' },
      { address: '203.0.113.9' },
      { address: '2001:db8::' }
    ]
  )
})

t.test('windows of limits are shown exactly', async t => {
  const fake = await fakeOps(undo => t.teardown(undo))
  const page = await visitOps(t, browser, `${fake.url}/ops/#/limits`)
  await page.locator('td').getByText('600 / 1 min').waitFor()
  const numbers = await page.locator('td.number').allTextContents()
  t.same(
    numbers.filter(text => text.includes('/')),
    ['600 / 1 min', '10 / 36 hr', '30 / 90 sec']
  )
})

t.test('a mark of direction in a name leaves what stands beside it in its order', async t => {
  const fake = await fakeOps(undo => t.teardown(undo), { text: 'eve\u202e' })
  const page = await visitOps(t, browser, `${fake.url}/ops/#/limits`)
  await page.locator('td').getByText('eve\\u202e 540').waitFor()
  await openPanel(page, 'sessions')
  await page.locator('td').getByText('eve').first().waitFor()
  const open = `[...document.querySelectorAll('main *')]
    .filter(each => [...each.childNodes].some(node => node.data?.includes('\u202e')))
    .filter(each => !getComputedStyle(each).unicodeBidi.startsWith('isolate'))
    .map(each => each.outerHTML)`
  t.same(await page.evaluate(open), [])
})

t.test('an act that counted a part of the sessions says so', async t => {
  const effect = { sessions: 1000, isWhole: false, users: 10_000 }
  const fake = await fakeOps(undo => t.teardown(undo), { effect })
  const page = await visitOps(t, browser, `${fake.url}/ops/#/sessions`)
  await page.getByRole('button', { name: 'Sign everybody out' }).click()
  const lines = page.getByRole('dialog').locator('.effect li')
  await lines.first().waitFor()
  t.same(await lines.allTextContents(), [
    'At least 1,000 sessions end: more were not counted',
    '10,000 users are affected'
  ])
})

t.test('a walk with the keyboard alone: panel, timeline, back, act', async t => {
  const fake = await fakeOps(undo => t.teardown(undo))
  const page = await visitOps(t, browser, `${fake.url}/ops/#/requests`)
  await page.locator('tbody .link').first().waitFor()
  const focused = async () =>
    (await page.evaluate(
      '(document.activeElement.ariaLabel ?? document.activeElement.textContent).trim()'
    )) as string
  const walkTo = async (name: RegExp) => {
    for (let step = 0; step < 80; step++) {
      if (name.test(await focused())) return
      await page.keyboard.press('Tab')
    }
    t.fail(`Tab does not lead to ${String(name)}`)
  }
  await page.keyboard.press('Tab')
  t.equal(await focused(), 'Skip to the content')
  await page.keyboard.press('Enter')
  await walkTo(/^Timeline of/)
  await page.keyboard.press('Enter')
  await until('the timeline has the focus', async () => (await focused()) === 'Timeline')
  await page.keyboard.press('Escape')
  await until('the focus is back', async () => (await focused()).startsWith('Timeline of'))
  await page.reload()
  await walkTo(/^Sessions$/)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'Sessions' }).waitFor()
  await page.locator('.row-acts').first().waitFor()
  await walkTo(/^Close this session of/)
  await page.keyboard.press('Enter')
  await page.locator('.effect li').first().waitFor()
  await walkTo(/^Close the session$/)
  await page.keyboard.press('Enter')
  await until('the act was run', () => fake.acts.length === 1)
})

t.test(
  'filters ask the gateway, so does the search of sessions, and addresses are searched',
  async t => {
    const fake = await fakeOps(undo => t.teardown(undo))
    const page = await visitOps(t, browser, `${fake.url}/ops/#/requests`)
    await page.getByLabel('Status').selectOption('5xx')
    await until('only failed ones are left', async () => {
      const texts = await page.locator('tbody .pill').allTextContents()
      return texts.length > 0 && texts.every(text => text === '502')
    })
    await page.getByLabel('Status').selectOption('')
    await page.getByRole('searchbox', { name: 'User' }).fill('nobody')
    await page.getByText('No request fits.').waitFor()
    await openPanel(page, 'sessions')
    await page.getByRole('searchbox').fill('carol')
    await until('one user is left', async () => {
      const rows = await page.getByRole('table', { name: 'Signed in' }).locator('tbody tr').count()
      return rows === 3
    })
    await page.getByRole('searchbox').fill('192.0.2.7')
    await page.getByText('192.0.2.7').waitFor()
  }
)

t.test('maintenance is begun with an end and a message', async t => {
  const fake = await fakeOps(undo => t.teardown(undo))
  const page = await visitOps(t, browser, `${fake.url}/ops/#/maintenance`)
  await page.getByLabel('For', { exact: true }).selectOption('60')
  await page.getByLabel('Message for users').fill('Back soon.')
  await page.getByRole('button', { name: 'Begin maintenance' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'Begin maintenance' }).click()
  await until('it was begun', () => fake.acts.length === 1)
  const { path, body } = fake.acts[0] ?? { path: '', body: {} }
  t.equal(path, 'maintenance')
  t.equal(body['message'], 'Back soon.')
  const minutes = (Date.parse(String(body['until'])) - Date.now()) / 60_000
  t.ok(minutes > 55 && minutes <= 60)
})
