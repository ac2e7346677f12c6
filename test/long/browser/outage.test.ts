/** A console's bell while its back-end is away, in a browser. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import tap from 'tap'
import { testBrowser } from '../../support/chromium.ts'
import { password, testGateway } from '../../support/gateway.ts'
import { json, testUpstream } from '../../support/upstream.ts'

const browser = await testBrowser(undo => tap.teardown(undo))

/** A page of one bell: it shows the notices, or that they failed. */
function writeConsole(cleanUp: (undo: () => unknown) => void): string {
  const root = mkdtempSync(join(tmpdir(), 'console-'))
  cleanUp(() => rmSync(root, { recursive: true, force: true }))
  const html = '<!doctype html><title>bell</title><p id="bell"></p><script src="/bell.js"></script>'
  const script = `
    fetch('/api/notices').then(async response => {
      const titles = response.ok ? (await response.json()).map(({ title }) => title).join() : ''
      document.getElementById('bell').textContent = [response.status, titles].join(' | ')
    })
  `
  writeFileSync(join(root, 'index.html'), html)
  writeFileSync(join(root, 'bell.js'), script)
  return root
}

void tap.test('the bell shows the fixed list while the back-end is away', async t => {
  const backend = await testUpstream(undo => t.teardown(undo), json(200, [{ title: 'Hello' }]))
  const gateway = await testGateway(undo => t.teardown(undo), {
    gateway: { console: { root: writeConsole(undo => t.teardown(undo)) } },
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        notices: { path: '/api/notices', upstream: 'b', fallback: { body: [{ title: 'Away' }] } }
      }
    }
  })
  const context = await browser.newContext()
  t.teardown(() => context.close())
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
