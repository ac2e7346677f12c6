/** Files of a back-end in a frame of the console. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { testBrowser } from '../../support/chromium.ts'
import { testGateway } from '../../support/gateway.ts'
import { testUpstream } from '../../support/upstream.ts'

const browser = await testBrowser(undo => t.teardown(undo))

t.test('case 12: Chromium shows a page in a frame where its route says so', async t => {
  const backend = await testUpstream(
    undo => t.teardown(undo),
    (_request, response) => {
      const page = '<!doctype html><p>the report'
      response.writeHead(200, { 'content-type': 'text/html' }).end(page)
    }
  )
  const root = mkdtempSync(join(tmpdir(), 'frames-'))
  t.teardown(() => rmSync(root, { recursive: true }))
  const frames = ['report', 'plain'].map(
    name => `<iframe id="${name}" src="/api/${name}"></iframe>`
  )
  writeFileSync(join(root, 'index.html'), `<!doctype html><title>x</title>${frames.join('')}`)
  const open = { access: 'public', upstream: 'b' } as const
  const gateway = await testGateway(undo => t.teardown(undo), {
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

t.end()
