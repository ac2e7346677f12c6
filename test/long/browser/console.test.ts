/** The example console, as the demo serves it, in a real browser. */
import type { Page } from 'playwright-core'
import t, { type Test } from 'tap'
import { shows, signIn, visit } from '../../browser/visit.ts'
import { testBrowser } from '../../support/chromium.ts'
import { testDemo } from '../../support/demo.ts'
import { testUpstream } from '../../support/upstream.ts'

const browser = await testBrowser(t.teardown)
const demo = await testDemo(t.teardown)
const { url } = demo

/** Somebody new, who signs in. */
async function visitor(t: Test, username: string): Promise<Page> {
  const page = await visit(t, browser, url)
  await signIn(page, username)
  await page.getByTestId('profile-name').waitFor()
  return page
}

const cookiesOf = async (page: Page) =>
  (await page.context().cookies()).toSorted((a, b) => (a.name < b.name ? -1 : 1))

const isIn = async (page: Page) => {
  await page.reload()
  await page.getByTestId('profile-name').waitFor()
  return (await page.getByTestId('profile-role').textContent())?.toLowerCase()
}

t.test('an administrator signs in, sees profile, notices and orders, and signs out', async t => {
  const page = await visit(t, browser, url)
  await page.waitForURL('**/login*')
  await signIn(page, 'admin', 'wrong')
  await shows(page, 'login-error', 'The user name or the password is wrong.')
  t.same(await cookiesOf(page), [])
  await signIn(page, 'admin')
  await shows(page, 'profile-name', /\w/)
  await page.getByTestId('notice').nth(3).waitFor()
  await page.getByTestId('order').first().waitFor()
  t.match(await isIn(page), 'admin', 'still signed in after a reload')
  const strict = { httpOnly: true, sameSite: 'Strict' }
  t.match(await cookiesOf(page), [
    { name: 'console_known', ...strict },
    { name: 'console_sid', ...strict }
  ])
  t.equal(await page.evaluate('document.cookie'), '', 'scripts see no cookie')
  await page.getByTestId('sign-out').click()
  await page.waitForURL('**/login*')
  t.match(await cookiesOf(page), [{ name: 'console_known' }])
  t.equal((await cookiesOf(page)).length, 1, 'what is left opens nothing')
  await page.goto(url)
  await page.waitForURL('**/login*')
})

t.test('a user without the role sees why the orders are not there', async t => {
  await shows(await visitor(t, 'user'), 'orders-forbidden', 'Your role does not allow this.')
})

t.test('who is known to the back-end only signs in through its own sign-in', async t => {
  await shows(await visitor(t, 'carol'), 'profile-name', 'Carol')
})

t.test('a session that was ended elsewhere leads back to the sign-in page', async t => {
  const page = await visitor(t, 'admin')
  const cookie = (await cookiesOf(page)).map(({ name, value }) => `${name}=${value}`).join('; ')
  t.equal((await fetch(`${url}/api/account/logout`, { headers: { cookie } })).status, 200)
  await page.reload()
  await page.waitForURL('**/login*')
})

t.test('a page of another origin can sign nobody in or out, and reads nothing', async t => {
  const page = await visitor(t, 'admin')
  // Another port of the same host: the same site, so the cookie goes along, but another origin.
  const { url: foreign } = await testUpstream(t.after, (_request, response) => {
    response.setHeader('content-type', 'text/html').end('<!doctype html><title>foreign</title>')
  })
  const attacker = await page.context().newPage()
  await attacker.goto(foreign)
  const outcome = await attacker.evaluate(`(async () => {
      const send = async (path, options) => {
        const all = { credentials: 'include', ...options }
        try { return (await fetch('${url}/api' + path, all)).status } catch { return 'refused' }
      }
      const blind = { method: 'POST', mode: 'no-cors' }
      const seen = [
        await send('/account/profile'),
        await send('/account/logout', { method: 'POST' }),
      ]
      await send('/account/logout', { mode: 'no-cors' })
      await send('/account/logout', blind)
      await new Promise(resolve => {
        const image = new Image()
        image.onerror = image.onload = resolve
        image.src = '${url}/api/account/logout'
      })
      const body = '{"username":"user","password":"ant.design"}'
      await send('/auth/admin/login', { ...blind, headers: { 'content-type': 'text/plain' }, body })
      await send('/orders', { ...blind, body: '{}' })
      return seen
    })()`)
  t.same(outcome, ['refused', 'refused'])
  t.match(await isIn(page), 'admin', 'the same user is still signed in')
})

t.test('a back-end that is down shows an error with a retry, not the sign-in page', async t => {
  const page = await visitor(t, 'admin')
  await demo.backend.close()
  await page.reload()
  await shows(page, 'page-error', 'cannot be reached')
  t.ok(await page.getByTestId('retry').isVisible())
  t.match(await cookiesOf(page), [{}, { name: 'console_sid' }], 'still signed in')
})
