/** A page with a WebSocket, in a browser. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import tap from 'tap'
import { testBrowser } from '../../support/chromium.ts'
import { password, testGateway } from '../../support/gateway.ts'
import { webSocketUpstream } from '../../support/websocket.ts'

const browser = await testBrowser(undo => tap.teardown(undo))

/** A console of one page, which says what becomes of its socket. */
function writeConsole(cleanUp: (undo: () => unknown) => void): string {
  const root = mkdtempSync(join(tmpdir(), 'console-'))
  cleanUp(() => rmSync(root, { recursive: true, force: true }))
  const html =
    '<!doctype html><title>chat</title><p id="state">new</p><script src="/chat.js"></script>'
  const script = `
    const say = text => { document.getElementById('state').textContent = text }
    const socket = new WebSocket(location.origin.replace('http', 'ws') + '/api/chat')
    socket.onopen = () => socket.send('hello')
    socket.onmessage = ({ data }) => say('got ' + data)
    socket.onclose = ({ code, reason, wasClean }) => say(['closed', code, reason, wasClean].join(' '))
  `
  writeFileSync(join(root, 'index.html'), html)
  writeFileSync(join(root, 'chat.js'), script)
  return root
}

const shows = async (page: Page, text: string) =>
  await page.locator('#state').filter({ hasText: text }).waitFor({ timeout: 60_000 })

void tap.test('a chat closes with 4401 when its user signs out in another tab', async t => {
  const backend = await webSocketUpstream(undo => t.teardown(undo))
  const root = writeConsole(undo => t.teardown(undo))
  const gateway = await testGateway(undo => t.teardown(undo), {
    gateway: { console: { root } },
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: { chat: { path: '/api/chat', upstream: 'b', websocket: {} } }
    }
  })
  const context = await browser.newContext()
  t.teardown(() => context.close())
  const chat = await context.newPage()
  await chat.goto(gateway.url)
  await shows(chat, 'closed 1006')
  t.pass('nobody is signed in: the upgrade is refused')
  const other = await context.newPage()
  await other.goto(gateway.url)
  const signIn = `fetch('/api/auth/admin/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'alice', password: ${JSON.stringify(password)} })
  }).then(({ status }) => status)`
  t.equal(await other.evaluate(signIn), 200)
  await chat.reload()
  await shows(chat, 'got hello')
  t.match(backend.requests.at(-1)?.headers, { 'x-user-name': 'alice', 'origin': gateway.url })
  const signOut = `fetch('/api/account/logout', { method: 'POST' }).then(({ status }) => status)`
  t.equal(await other.evaluate(signOut), 200)
  const startedAt = performance.now()
  await shows(chat, 'closed 4401 session.revoked true')
  t.comment(`${Math.round(performance.now() - startedAt)} ms after the sign-out`)
})

void tap.test(
  'a page of another site gets no socket, though the browser sends cookies',
  async t => {
    const backend = await webSocketUpstream(undo => t.teardown(undo))
    const root = writeConsole(undo => t.teardown(undo))
    const routes = {
      upstreams: { b: { url: backend.url } },
      routes: { chat: { path: '/api/chat', upstream: 'b', access: 'public', websocket: {} } }
    }
    const open = async (port: object) =>
      await testGateway(undo => t.teardown(undo), {
        gateway: { console: { root }, ...port },
        routes
      })
    const [here, there] = [await open({}), await open({})]
    const context = await browser.newContext({ bypassCSP: true })
    t.teardown(() => context.close())
    const page = await context.newPage()
    await page.goto(here.url)
    await shows(page, 'got hello')
    const before = backend.requests.length
    const code = await page.evaluate(`new Promise(resolve => {
    const socket = new WebSocket('${there.url.replace('http', 'ws')}/api/chat')
    socket.onopen = () => resolve('open')
    socket.onclose = ({ code }) => resolve(code)
  })`)
    t.equal(code, 1006)
    t.equal(backend.requests.length, before, 'the upstream was not asked')
  }
)
