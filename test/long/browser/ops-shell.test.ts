/** The ops page around its panels: sign-in, ended sessions, lost connections, colours, keys. */
import t from 'tap'
import { testBrowser } from '../../support/chromium.ts'
import { until } from '../../support/until.ts'
import { fakeOps } from './ops-fake.ts'
import { axeFindings, visitOps } from '../../browser/ops-page.ts'

const browser = await testBrowser(undo => t.teardown(undo))

t.test(
  'sign-in: a wrong password is said with the request’s id, the right one leads in',
  async t => {
    const fake = await fakeOps(undo => t.teardown(undo))
    fake.state.isSignedIn = false
    const page = await visitOps(t, browser, `${fake.url}/ops/`)
    await page.getByLabel('User name').fill('olivia')
    await page.getByLabel('Password').fill('wrong')
    t.same(await axeFindings(page), [])
    await page.keyboard.press('Enter')
    const alert = page.getByRole('alert')
    await alert.filter({ hasText: 'The user name or the password is wrong.' }).waitFor()
    t.match(await alert.textContent(), 'request-1')
    await page.getByLabel('Password').fill('right')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor()
    t.equal(await page.evaluate('document.cookie'), '', 'scripts see no cookie')
  }
)

t.test('an ended session asks above the panel, whose filter stays', async t => {
  const fake = await fakeOps(undo => t.teardown(undo), { frameMs: 100 })
  const page = await visitOps(t, browser, `${fake.url}/ops/`)
  const filter = page.getByLabel('Filter routes')
  await filter.fill('order')
  fake.state.isSignedIn = false
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('User name').fill('olivia')
  await page.keyboard.press('Escape')
  await dialog.getByLabel('Password').fill('right')
  t.same(await axeFindings(page), [])
  t.equal(await page.getByRole('alert').count(), 0, 'it is no lost connection, and no failure')
  await page.keyboard.press('Enter')
  await dialog.waitFor({ state: 'detached' })
  t.equal(await filter.inputValue(), 'order')
  await page.getByText('Live', { exact: true }).waitFor()
})

t.test('a lost connection is said, the numbers stay, and it comes back by itself', async t => {
  const fake = await fakeOps(undo => t.teardown(undo), { frameMs: 100 })
  const page = await visitOps(t, browser, `${fake.url}/ops/`)
  await page.getByText('Live', { exact: true }).waitFor()
  fake.state.isDown = true
  await page.getByRole('alert').filter({ hasText: 'No connection to the gateway' }).waitFor()
  t.ok(await page.getByRole('table', { name: 'Routes' }).isVisible())
  t.same(await axeFindings(page), [])
  fake.state.isDown = false
  await page.getByText('Live', { exact: true }).waitFor()
  t.equal(await page.getByRole('alert').count(), 0)
})

t.test('a stream that ends is opened again at once, without an alarm', async t => {
  const fake = await fakeOps(undo => t.teardown(undo), { frameMs: 100 })
  const page = await visitOps(t, browser, `${fake.url}/ops/`)
  await page.getByText('Live', { exact: true }).waitFor()
  // Each state that the connection shows from now on.
  await page.evaluate(`window.shown = []; new MutationObserver(() => {
    shown.push(document.querySelector('.connection').textContent)
  }).observe(document.querySelector('.connection'), { subtree: true, characterData: true })`)
  const { streams } = fake.state
  fake.state.endStreams()
  await until('there is another stream', () => fake.state.streams > streams)
  await page.getByText('Live', { exact: true }).waitFor()
  t.same(await page.evaluate('shown'), ['Connecting…', 'Live'])
})

t.test('a call that hangs is given up and asked again, at the opening and later', async t => {
  const fake = await fakeOps(undo => t.teardown(undo), { frameMs: 100 })
  const context = await browser.newContext({ locale: 'en-US' })
  t.teardown(() => context.close())
  const page = await context.newPage()
  await page.addInitScript(`{
    const { timeout } = AbortSignal
    AbortSignal.timeout = ms => timeout.call(AbortSignal, ms / 20)
  }`)
  let isHanging = true
  await page.route('**/ops/api/me', async route => {
    if (!isHanging) await route.continue()
    isHanging = false
  })
  await page.goto(`${fake.url}/ops/`)
  await page.getByText('Live', { exact: true }).waitFor()
  isHanging = true
  const { streams } = fake.state
  fake.state.endStreams()
  await until('there is another stream', () => fake.state.streams > streams)
  t.equal(isHanging, false, 'a call hung')
  await page.getByText('Live', { exact: true }).waitFor()
})

t.test('a tab that is hidden for minutes ends its streams, and has them when shown', async t => {
  const fake = await fakeOps(undo => t.teardown(undo), { frameMs: 100 })
  const page = await visitOps(t, browser, `${fake.url}/ops/#/now`)
  await page.getByText('Live', { exact: true }).waitFor()
  await page.clock.install()
  const show = (isShown: boolean) =>
    page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${!isShown}, configurable: true })
      document.dispatchEvent(new Event('visibilitychange'))`)
  await show(false)
  await page.clock.fastForward('04:00')
  await until('a short look elsewhere ends nothing', () => fake.state.open() === 1)
  await page.clock.fastForward('02:00')
  await until('the stream is ended', () => fake.state.open() === 0)
  const { streams } = fake.state
  await page.clock.fastForward('02:00')
  t.equal(fake.state.streams, streams, 'nothing is retried for nobody')
  await show(true)
  await until('there is a stream again', () => fake.state.open() === 1)
})

t.test('a page that is opened while nobody can be recognised asks for no password', async t => {
  const fake = await fakeOps(undo => t.teardown(undo))
  fake.state.isDown = true
  const page = await visitOps(t, browser, `${fake.url}/ops/`)
  await page.getByRole('alert').filter({ hasText: 'Redis does not answer.' }).waitFor()
  t.equal(await page.getByLabel('Password').count(), 0)
  t.same(await axeFindings(page), [])
  fake.state.isDown = false
  await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor()
  t.equal(await page.getByRole('alert').count(), 0)
})

t.test('charts move: numbers and lines change with each frame', async t => {
  const fake = await fakeOps(undo => t.teardown(undo), { frameMs: 100 })
  const page = await visitOps(t, browser, `${fake.url}/ops/`)
  const canvas = page.locator('.plot canvas').first()
  await canvas.waitFor()
  const image = async () =>
    await page.evaluate('document.querySelector(".plot canvas").toDataURL()')
  const shown = async () => await page.locator('.figure dd').first().textContent()
  const [before, number] = [await image(), await shown()]
  await until('the chart is another', async () => (await image()) !== before)
  await until('the number is another', async () => (await shown()) !== number)
  await page.getByRole('button', { name: 'invoices' }).click()
  await page.getByRole('heading', { name: 'Route invoices' }).waitFor()
  t.match(
    await page.getByRole('img').nth(1).getAttribute('aria-label'),
    /p50: now [\d.]+ ms, highest [\d.]+ ms in the last 5 minutes/
  )
})

t.test('colours are those of the browser, and follow it', async t => {
  const fake = await fakeOps(undo => t.teardown(undo))
  const page = await visitOps(t, browser, `${fake.url}/ops/`, {
    locale: 'zh-CN',
    colorScheme: 'dark'
  })
  await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor()
  t.equal(await page.locator('html').getAttribute('lang'), 'en')
  const background = async () =>
    await page.evaluate('getComputedStyle(document.body).backgroundColor')
  const dark = await background()
  await page.emulateMedia({ colorScheme: 'light' })
  await until('the colours are others', async () => (await background()) !== dark)
})

t.test('nothing is loaded from elsewhere', async t => {
  const fake = await fakeOps(undo => t.teardown(undo))
  const page = await visitOps(t, browser, `${fake.url}/ops/`)
  await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor()
  const hosts = new Set<string>()
  page.on('request', request => hosts.add(new URL(request.url()).origin))
  await page.reload()
  await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor()
  t.same([...hosts], [fake.url])
})
