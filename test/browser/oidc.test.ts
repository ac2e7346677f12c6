/** Sign-in at an OpenID provider of another site in a real browser, by a strict cookie. */
import t from 'tap'
import { testBrowser } from '../support/chromium.ts'
import { testGateway } from '../support/gateway.ts'
import { oidcPath, testProvider } from '../support/oidc-provider.ts'
import { oidcVisitor } from '../support/oidc-visitor.ts'
import { testUpstream } from '../support/upstream.ts'
import { visit } from './visit.ts'

const browser = await testBrowser(t.teardown)
const provider = await testProvider(t.teardown)
const gateway = await testGateway(
  t.teardown,
  {
    gateway: {
      console: { root: 'site', signIn: 'sso' },
      ops: { role: 'admin', sources: ['sso'] },
      login: { sources: { sso: provider.config() } }
    },
    code: {
      'site/index.html':
        '<!doctype html><title>console</title><p id="user"></p><script src="/app.js"></script>',
      'site/app.js': `
        fetch('/api/account/profile').then(async response => {
          const { data } = await response.json()
          document.getElementById('user').textContent = data?.username ?? 'nobody'
        })
      `
    }
  },
  provider.environment
)
// Another site than the provider's 127.0.0.1.
const consoleUrl = gateway.url.replace('127.0.0.1', 'localhost')
const opsUrl = gateway.opsUrl.replace('127.0.0.1', 'localhost')
provider.register(consoleUrl, opsUrl)

/** Links to the console from another site, as a mail has them. */
const { url: mailUrl } = await testUpstream(t.teardown, (_request, response) => {
  response.setHeader('content-type', 'text/html').end(`<a href="${consoleUrl}/orders">orders</a>`)
})

const shown = (user: string) => `#user:text-is("${user}")`

t.test('a page leads to the provider and back to itself, signed in', async t => {
  const page = await visit(t, browser, `${consoleUrl}/orders?page=2`)
  let callback = ''
  page.on('request', request => {
    if (request.url().includes(`${oidcPath}/callback?`)) callback = request.url()
  })
  t.match(page.url(), `${provider.issuer}/interaction/`)
  await page.click('button[value=alice]')
  await page.waitForSelector(shown('alice'))
  t.equal(page.url(), `${consoleUrl}/orders?page=2`)
  const cookies = await page.context().cookies(consoleUrl)
  const session = cookies.find(({ name }) => name === 'console_sid')
  t.match(session, { sameSite: 'Strict', httpOnly: true })
  // Back is the form of the provider: the pages in between are no part of the history.
  await page.goBack()
  t.match(page.url(), `${provider.issuer}/interaction/`)
  await page.goForward()
  await page.waitForSelector(shown('alice'))
  // As a restored tab, or a bookmark, does.
  await page.goto(callback)
  await page.waitForSelector(shown('alice'))
  t.equal(page.url(), `${consoleUrl}/orders?page=2`)
  await page.goto(mailUrl)
  await page.click('a')
  await page.waitForSelector(shown('alice'))
  t.equal(page.url(), `${consoleUrl}/orders`, 'from another site, signed in')
})

t.test('an operator comes back to the page that was asked for', async t => {
  const page = await visit(t, browser, `${opsUrl}/ops/users`)
  await page.click('a.button')
  await page.click('button[value=alice]')
  await page.waitForURL(`${opsUrl}/ops/users`)
  t.match(await page.textContent('header form'), 'alice')
})

t.test('two tabs at once, each to its own page', async t => {
  const a = await visit(t, browser, `${consoleUrl}/a`)
  const b = await a.context().newPage()
  await b.goto(`${consoleUrl}/b`)
  await b.click('button[value=alice]')
  await b.waitForSelector(shown('alice'))
  await a.click('button[value=alice]')
  await a.waitForSelector(shown('alice'))
  t.same([a.url(), b.url()], [`${consoleUrl}/a`, `${consoleUrl}/b`])
})

t.test('a callback that is opened in another browser signs nobody in', async t => {
  const attacker = oidcVisitor(() => consoleUrl, provider)
  const { next } = await attacker.start()
  const callback = await attacker.atProvider(next, 'bob')
  const other = await visit(t, browser, mailUrl)
  await other.evaluate(`location.assign(${JSON.stringify(callback)})`)
  await other.waitForURL(`**${oidcPath}/finish*`)
  t.match(await other.textContent('p'), 'another browser')
  t.notOk((await other.context().cookies(consoleUrl)).some(({ name }) => name === 'console_sid'))
})

t.test('a link from another site to the first page begins a sign-in, too', async t => {
  const page = await visit(t, browser, mailUrl)
  await page.click('a')
  await page.click('button[value=bob]')
  await page.waitForSelector(shown('bob'))
  t.equal(page.url(), `${consoleUrl}/orders`)
})
