import tap from 'tap'
import { testBrowser } from '../../support/chromium.ts'
import { testDemo } from '../../support/demo.ts'
import { signIn, visit } from '../../browser/visit.ts'

const browser = await testBrowser(undo => tap.teardown(undo))

void tap.test(
  'an administrator signs in, sees profile, notices and orders, and signs out',
  async t => {
    const { url } = await testDemo(undo => t.after(undo))
    const page = await visit(t, browser, url)
    await page.waitForURL('**/login*')
    await signIn(page, 'admin')
    await page.getByTestId('profile-name').waitFor()
    t.match(await page.getByTestId('profile-name').textContent(), /\w/)
    t.match((await page.getByTestId('profile-role').textContent())?.toLowerCase(), 'admin')
    await page.getByTestId('notice').first().waitFor()
    t.ok((await page.getByTestId('notice').count()) > 3, 'notices')
    await page.getByTestId('order').first().waitFor()
    await page.reload()
    await page.getByTestId('profile-name').waitFor()
    t.pass('still signed in after a reload')
    const cookies = await page.context().cookies()
    t.same(
      cookies
        .toSorted((a, b) => (a.name < b.name ? -1 : 1))
        .map(({ name, httpOnly, sameSite }) => ({ name, httpOnly, sameSite })),
      [
        { name: 'console_known', httpOnly: true, sameSite: 'Strict' },
        { name: 'console_sid', httpOnly: true, sameSite: 'Strict' }
      ]
    )
    t.equal(await page.evaluate('document.cookie'), '', 'scripts see no cookie')
    await page.getByTestId('sign-out').click()
    await page.waitForURL('**/login*')
    t.same(
      (await page.context().cookies()).map(({ name }) => name),
      ['console_known'],
      'what is left opens nothing'
    )
    await page.goto(url)
    await page.waitForURL('**/login*')
  }
)

void tap.test('a wrong password is said in the gateway’s words, at the form', async t => {
  const { url } = await testDemo(undo => t.after(undo))
  const page = await visit(t, browser, url)
  await signIn(page, 'admin', 'wrong')
  await page
    .getByTestId('login-error')
    .filter({ hasText: 'The user name or the password is wrong.' })
    .waitFor()
  t.same(await page.context().cookies(), [])
  await signIn(page, 'admin')
  await page.getByTestId('profile-name').waitFor()
})

void tap.test('a user without the role sees why the orders are not there', async t => {
  const { url } = await testDemo(undo => t.after(undo))
  const page = await visit(t, browser, url)
  await signIn(page, 'user')
  await page
    .getByTestId('orders-forbidden')
    .filter({ hasText: 'Your role does not allow this.' })
    .waitFor()
  t.pass('the gateway’s message')
})

void tap.test('who is known to the back-end only signs in through its own sign-in', async t => {
  const { url } = await testDemo(undo => t.after(undo))
  const page = await visit(t, browser, url)
  await signIn(page, 'carol')
  await page.getByTestId('profile-name').filter({ hasText: 'Carol' }).waitFor()
  t.pass('the back-end vouched for her')
})

void tap.test('a session that was ended elsewhere leads back to the sign-in page', async t => {
  const { url } = await testDemo(undo => t.after(undo))
  const page = await visit(t, browser, url)
  await signIn(page, 'admin')
  await page.getByTestId('profile-name').waitFor()
  const cookie = (await page.context().cookies()).find(({ name }) => name === 'console_sid')
  t.equal(
    (
      await fetch(`${url}/api/account/logout`, {
        headers: { cookie: `console_sid=${cookie?.value}` }
      })
    ).status,
    200
  )
  await page.reload()
  await page.waitForURL('**/login*')
})

void tap.test(
  'a back-end that is down shows an error with a retry, not the sign-in page',
  async t => {
    const { url, backend } = await testDemo(undo => t.after(undo))
    const page = await visit(t, browser, url)
    await signIn(page, 'admin')
    await page.getByTestId('profile-name').waitFor()
    await backend.close()
    await page.reload()
    await page.getByTestId('page-error').filter({ hasText: 'cannot be reached' }).waitFor()
    t.ok(await page.getByTestId('retry').isVisible())
    t.ok(
      (await page.context().cookies()).some(({ name }) => name === 'console_sid'),
      'still signed in'
    )
  }
)

void tap.test(
  'a page of another origin can neither sign anyone in nor out, nor read anything',
  async t => {
    const { url } = await testDemo(undo => t.after(undo))
    const { createServer } = await import('node:http')
    const page = await visit(t, browser, url)
    await signIn(page, 'admin')
    await page.getByTestId('profile-name').waitFor()
    // Another port of the same host: the same site, so the cookie goes along, but another origin.
    const foreign = createServer((_request, response) => {
      response.setHeader('content-type', 'text/html').end('<!doctype html><title>foreign</title>')
    })
    await new Promise<void>(resolve => foreign.listen(0, '127.0.0.1', resolve))
    t.teardown(() => foreign.close())
    const { port } = foreign.address() as { port: number }
    const attacker = await page.context().newPage()
    await attacker.goto(`http://127.0.0.1:${port}/`)
    const outcome = await attacker.evaluate(`(async base => {
    const seen = []
    const attempt = async (name, work) => { try { seen.push(name + ': ' + await work()) } catch { seen.push(name + ': refused') } }
    await attempt('read', async () => (await fetch(base + '/api/account/profile', { credentials: 'include' })).status)
    await attempt('logout', async () => (await fetch(base + '/api/account/logout', { method: 'POST', credentials: 'include' })).status)
    await fetch(base + '/api/account/logout', { mode: 'no-cors', credentials: 'include' })
    await fetch(base + '/api/account/logout', { method: 'POST', mode: 'no-cors', credentials: 'include' })
    await new Promise(resolve => { const image = new Image(); image.onerror = image.onload = resolve; image.src = base + '/api/account/logout' })
    await fetch(base + '/api/auth/admin/login', { method: 'POST', mode: 'no-cors', credentials: 'include', headers: { 'content-type': 'text/plain' }, body: '{"username":"user","password":"ant.design"}' })
    await fetch(base + '/api/orders', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}' })
    return seen
  })('${url}')`)
    t.same(outcome, ['read: refused', 'logout: refused'])
    await page.reload()
    await page.getByTestId('profile-name').waitFor()
    t.match(
      (await page.getByTestId('profile-role').textContent())?.toLowerCase(),
      'admin',
      'the same user is still signed in'
    )
  }
)
