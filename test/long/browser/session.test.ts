import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { testBrowser } from '../../support/chromium.ts'
import { stopClock } from '../../support/clock.ts'
import { testDemo } from '../../support/demo.ts'
import { shows, signIn, visit } from '../../browser/visit.ts'

const browser = await testBrowser(t.teardown)
const seconds = 1000
const minutes = 60 * seconds

/** Someone who has signed in and sees the whole page, and what lets time pass. */
async function visitor(t: Test, session: object = {}) {
  const passHere = stopClock(t.after)
  /** For the gateway, which lives in this process, and for pages. */
  const pass = async (ms: number, ...pages: Page[]) => {
    passHere(ms)
    for (const each of pages) await each.clock.fastForward(ms)
  }
  const { url } = await testDemo(t.after, session)
  const page = await visit(t, browser, 'about:blank')
  await page.clock.install()
  await page.goto(url)
  await signIn(page, 'admin')
  await page.getByTestId('order').first().waitFor()
  return { url, page, pass, dialog: page.getByTestId('expiry-dialog') }
}

/** Seconds until the session goes idle, as the gateway says; asking does not change it. */
async function idleIn(page: Page): Promise<number> {
  const answer = await page.request.get(`${new URL(page.url()).origin}/api/session`)
  return ((await answer.json()) as { data: { idleIn: number } }).data.idleIn
}

/** The page has asked the gateway about the session, and has dealt with the answer: a later answer is there, too. */
async function asked(page: Page): Promise<void> {
  await page.waitForEvent('requestfinished', request => request.url().endsWith('/api/session'))
  await page.evaluate('fetch("/favicon.svg").then(answer => answer.text())')
}

const signedOut = async (page: Page, message: string) => {
  await page.waitForURL('**/login*')
  await shows(page, 'login-error', message)
}

t.test('two minutes before it goes idle the page warns, and staying extends it', async t => {
  const { page, pass, dialog } = await visitor(t)
  for (const ms of [10 * minutes, 10 * minutes, 7 * minutes]) {
    await Promise.all([asked(page), pass(ms, page)])
    t.notOk(await dialog.isVisible(), 'it is not time yet')
  }
  t.ok((await idleIn(page)) <= 180, 'the page’s own questions are no use')
  await pass(90 * seconds, page)
  await shows(page, 'expiry-left', /^1 min \d+ s$/)
  t.equal(await dialog.getAttribute('role'), 'alertdialog')
  t.equal(await page.evaluate('document.activeElement.id'), 'expiry-stay')
  await pass(40 * seconds, page)
  await shows(page, 'expiry-left', /^\d+ s$/)
  t.ok((await idleIn(page)) <= 50)
  await page.getByTestId('expiry-stay').click()
  await dialog.waitFor({ state: 'hidden' })
  t.ok((await idleIn(page)) > 29 * 60, 'the gateway set the clock anew')
  await Promise.all([asked(page), pass(27 * minutes, page)])
  t.notOk(await dialog.isVisible(), 'and the page knows')
  await pass(90 * seconds, page)
  await dialog.waitFor()
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'hidden' })
  t.ok((await idleIn(page)) > 29 * 60, 'Escape goes on, too')
})

t.test('nothing is shown when another tab used the session, and a warning goes away', async t => {
  const { url, page, pass, dialog } = await visitor(t)
  const otherTab = async () =>
    t.equal((await page.request.get(`${url}/api/orders`)).status(), 200, 'the other tab')
  await pass(20 * minutes)
  await otherTab()
  await pass(9 * minutes)
  await page.route(
    '**/api/session',
    async route => {
      t.notOk(await dialog.isVisible(), 'nothing is shown before the gateway has answered')
      await route.continue()
    },
    { times: 1 }
  )
  await Promise.all([asked(page), page.clock.fastForward(29 * minutes)])
  t.notOk(await dialog.isVisible(), 'this tab’s own time is nearly over, the session’s is not')
  await pass(20 * minutes, page)
  await dialog.waitFor()
  await otherTab()
  await pass(16 * seconds, page)
  await dialog.waitFor({ state: 'hidden' })
})

t.test('when the time is over the sign-in page comes, with the gateway’s words', async t => {
  const { page, pass, dialog } = await visitor(t)
  const inactive = 'You were signed out because you were inactive.'
  await pass(29 * minutes, page)
  await dialog.waitFor()
  await pass(61 * seconds, page)
  await signedOut(page, inactive)
  t.notOk(await dialog.isVisible())
  await signIn(page, 'admin')
  await page.getByTestId('profile-name').waitFor()
  // As a device that slept through it all.
  await pass(32 * minutes, page)
  await signedOut(page, inactive)
})

t.test('the longest duration cannot be put off: the page says, and keeps saying so', async t => {
  const { page, pass, dialog } = await visitor(t, { absolute: '20m' })
  await pass(18.5 * minutes, page)
  await shows(page, 'expiry-dialog', 'Please save your work')
  t.notOk(await page.getByTestId('expiry-stay').isVisible())
  t.equal(await page.evaluate('document.activeElement.id'), 'expiry-continue')
  await page.getByTestId('expiry-continue').click()
  await dialog.waitFor({ state: 'hidden' })
  await shows(page, 'expiry-note', /^Your session ends at .+ Please save your work\.$/)
  await Promise.all([asked(page), pass(30 * seconds, page)])
  t.notOk(await dialog.isVisible(), 'once is enough')
  await pass(61 * seconds, page)
  await signedOut(page, 'Your session has reached its longest duration.')
  t.equal(await page.getByTestId('expiry-note').textContent(), '')
})

t.test('the warning offers to sign out', async t => {
  const { page, pass, dialog } = await visitor(t)
  await pass(29 * minutes, page)
  await page.getByTestId('expiry-sign-out').click()
  await page.waitForURL('**/login')
  await dialog.waitFor({ state: 'hidden' })
  t.notOk((await page.context().cookies()).some(({ name }) => name === 'console_sid'))
})

t.test('a gateway that cannot be asked signs nobody out: that is said, and asked on', async t => {
  const { page, pass } = await visitor(t)
  await page.route('**/api/session**', route => route.abort())
  await pass(29 * minutes, page)
  await shows(page, 'expiry-error', 'The gateway cannot be reached.')
  await page.getByTestId('expiry-stay').click()
  await shows(page, 'expiry-error', 'The gateway cannot be reached.')
  await pass(2 * minutes, page)
  await shows(page, 'expiry-left', /^0 s$/)
  t.equal(new URL(page.url()).pathname, '/')
  await page.unroute('**/api/session**')
  await pass(6 * seconds, page)
  await shows(page, 'login-error', 'You were signed out because you were inactive.')
})
