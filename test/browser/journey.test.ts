/** One way through a real browser: a console with a WebSocket. More: test/long/browser. */
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import t from 'tap'
import { testBrowser } from '../support/chromium.ts'
import { password, testGateway } from '../support/gateway.ts'
import { webSocketUpstream } from '../support/websocket.ts'
import { visit } from './visit.ts'

const browser = await testBrowser(undo => t.teardown(undo))

/** A console of one page: it signs in and out, and says what becomes of its socket. */
const pageFiles = {
  'index.html':
    '<!doctype html><title>chat</title><button id="in">in</button><button id="out">out</button>' +
    '<p id="state">new</p><script src="/chat.js"></script>',
  'chat.js': `
    const say = text => { document.getElementById('state').textContent = text }
    const post = (path, body) => fetch(path, {
      method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body)
    })
    function chat() {
      const socket = new WebSocket(location.origin.replace('http', 'ws') + '/api/chat')
      socket.onopen = () => socket.send('hello')
      socket.onmessage = ({ data }) => say('got ' + data)
      socket.onclose = ({ code, reason, wasClean }) => say(['closed', code, reason, wasClean].join(' '))
    }
    const user = { username: 'alice', password: ${JSON.stringify(password)} }
    document.getElementById('in').onclick = () => post('/api/auth/admin/login', user).then(chat)
    document.getElementById('out').onclick = () => post('/api/account/logout', {})
    chat()
  `
}

const shows = async (page: Page, text: string) =>
  await page.locator('#state').filter({ hasText: text }).waitFor()

t.test('sign-in, and a WebSocket that closes with 4401 at the sign-out', async t => {
  const backend = await webSocketUpstream(t.teardown)
  const root = join(t.testdir({ console: pageFiles }), 'console')
  const gateway = await testGateway(t.teardown, {
    gateway: { console: { root } },
    backend: backend.url,
    routes: { routes: { chat: { websocket: {} } } }
  })
  const console = await visit(t, browser, gateway.url)
  await shows(console, 'closed 1006')
  t.same(backend.requests, [], 'nobody is signed in: the upgrade is refused')
  await console.locator('#in').click()
  await shows(console, 'got hello')
  t.match(backend.requests.at(-1)?.headers, { 'x-user-name': 'alice', 'origin': gateway.url })
  t.equal(await console.evaluate('document.cookie'), '', 'scripts see no cookie')

  await console.locator('#out').click()
  await shows(console, 'closed 4401 session.revoked true')
})
