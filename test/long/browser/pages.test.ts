/** What pages of a console see in a real browser: frames, an outage, a socket of another site. */
import t from 'tap'
import { testBrowser } from '../../support/chromium.ts'
import { password, testGateway } from '../../support/gateway.ts'
import { json, testUpstream } from '../../support/upstream.ts'
import { webSocketUpstream } from '../../support/websocket.ts'

const browser = await testBrowser(undo => t.teardown(undo))

t.test('case 12: Chromium shows a page in a frame where its route says so', async t => {
  const backend = await testUpstream(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><p>the report')
  })
  const frames = ['report', 'plain'].map(
    name => `<iframe id="${name}" src="/api/${name}"></iframe>`
  )
  const root = t.testdir({ 'index.html': `<!doctype html><title>x</title>${frames.join('')}` })
  const open = { access: 'public', upstream: 'b' } as const
  const gateway = await testGateway(t.after, {
    gateway: {
      console: { root, contentSecurityPolicy: "default-src 'self'; frame-src 'self'" }
    },
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        report: { path: '/api/report', ...open, framedByConsole: true },
        plain: { path: '/api/plain', ...open }
      }
    }
  })
  const page = await browser.newPage()
  await page.goto(gateway.url)
  const shown = page.frameLocator('#report').locator('p')
  await shown.filter({ hasText: 'the report' }).waitFor()
  t.ok(await shown.isVisible())
  const refused = page.frameLocator('#plain').locator('p').filter({ hasText: 'the report' })
  t.equal(await refused.count(), 0)
})

/** A page of one bell: it shows the notices, or that they failed. */
const bellFiles = {
  'index.html':
    '<!doctype html><title>bell</title><p id="bell"></p><script src="/bell.js"></script>',
  'bell.js': `
    fetch('/api/notices').then(async response => {
      const titles = response.ok ? (await response.json()).map(({ title }) => title).join() : ''
      document.getElementById('bell').textContent = [response.status, titles].join(' | ')
    })
  `
}

t.test('the bell shows the fixed list while the back-end is away', async t => {
  const backend = await testUpstream(t.after, json(200, [{ title: 'Hello' }]))
  const gateway = await testGateway(t.after, {
    gateway: { console: { root: t.testdir(bellFiles) } },
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        notices: { path: '/api/notices', upstream: 'b', fallback: { body: [{ title: 'Away' }] } }
      }
    }
  })
  const context = await browser.newContext()
  t.after(() => context.close())
  const page = await context.newPage()
  const bellShows = async (text: string) => {
    await page.goto(gateway.url)
    await page.locator('#bell').filter({ hasText: text }).waitFor({ timeout: 60_000 })
  }
  await bellShows('401 |')
  const signIn = `fetch('/api/auth/admin/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'alice', password: ${JSON.stringify(password)} })
  }).then(({ status }) => status)`
  t.equal(await page.evaluate(signIn), 200)
  await bellShows('200 | Hello')
  await backend.close()
  await bellShows('200 | Away')
  const signOut = `fetch('/api/account/logout', { method: 'POST' }).then(({ status }) => status)`
  t.equal(await page.evaluate(signOut), 200)
  await bellShows('401 |')
  t.pass('after sign-out nobody sees it')
})

t.test('a page of another site gets no socket, though the browser sends cookies', async t => {
  const backend = await webSocketUpstream(t.after)
  const root = t.testdir({ 'index.html': '<!doctype html><title>chat</title>' })
  const start = async () =>
    await testGateway(t.after, {
      gateway: { console: { root } },
      routes: {
        upstreams: { b: { url: backend.url } },
        routes: { chat: { path: '/api/chat', upstream: 'b', access: 'public', websocket: {} } }
      }
    })
  const [here, there] = [await start(), await start()]
  const context = await browser.newContext({ bypassCSP: true })
  t.after(() => context.close())
  const page = await context.newPage()
  await page.goto(here.url)
  const dialled = async (url: string) =>
    await page.evaluate(`new Promise(resolve => {
      const socket = new WebSocket('${url.replace('http', 'ws')}/api/chat')
      socket.onopen = () => resolve('open')
      socket.onclose = ({ code }) => resolve(code)
    })`)
  t.equal(await dialled(here.url), 'open')
  t.equal(await dialled(there.url), 1006)
  t.equal(backend.requests.length, 1, 'the upstream was asked by the own page alone')
})
