/** What pages of a console see in a real browser: frames. */
import t from 'tap'
import { testBrowser } from '../../support/chromium.ts'
import { testGateway } from '../../support/gateway.ts'
import { testUpstream } from '../../support/upstream.ts'

const browser = await testBrowser(t.teardown)

t.test('case 12: Chromium shows a page in a frame where its route says so', async t => {
  const backend = await testUpstream(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><p>the report')
  })
  const frames = ['report', 'plain'].map(
    name => `<iframe id="${name}" src="/api/${name}"></iframe>`
  )
  const root = t.testdir({ 'index.html': `<!doctype html><title>x</title>${frames.join('')}` })
  const gateway = await testGateway(t.after, {
    gateway: {
      console: { root, contentSecurityPolicy: "default-src 'self'; frame-src 'self'" }
    },
    backend: backend.url,
    routes: {
      routes: { report: { access: 'public', framedByConsole: true }, plain: { access: 'public' } }
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
