/** The listener for plain http only redirects to https, and only to names of the config. */
import t from 'tap'
import { testAuthority } from '../support/authority.ts'
import { testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { raw } from '../support/raw.ts'

const { certificate, key } = testAuthority(t.teardown)
const port = await freePort()
const gateway = await testGateway(t.teardown, {
  gateway: {
    server: {
      hosts: ['Console.example', '[::1]:8443'],
      tls: { certificate, key: `file:${key}`, redirect: `127.0.0.1:${port}` }
    },
    session: { cookie: { secure: true } }
  }
})

async function ask(head: string) {
  const { status, head: answer, whole } = await raw(`http://127.0.0.1:${port}`, `${head}\r\n\r\n`)
  const [, location] = /^location: (.*)\r$/im.exec(answer) ?? []
  return { status, location, answer, whole }
}

t.test('a known name leads to its https, with the same path and query', async t => {
  for (const [head, location] of [
    ['GET /a/b?c=%2F HTTP/1.1\r\nHost: console.EXAMPLE:8080', 'https://console.example/a/b?c=%2F'],
    ['HEAD / HTTP/1.0\r\nHost: console.example', 'https://console.example/'],
    ['GET / HTTP/1.1\r\nHost: [::1]:80', 'https://[::1]:8443/']
  ] as const) {
    const asked = await ask(head)
    t.match(asked, { status: 308, location, answer: /^connection: close\r?$/im }, head)
    t.notMatch(asked.answer, /strict-transport-security/i, 'what came in the clear promises none')
  }
  const line = await gateway.logged(({ path }) => path === '/a/b')
  t.match(line, { status: 308, method: 'GET' }, 'without its query')
})

t.test('nothing else leads anywhere, and no name of a client is repeated', async t => {
  const hosts = ['evil.example', 'console.example@evil.example']
  const more = 'evil.example\r\nX-Forwarded-Host: console.example'
  const targets = ['GET //evil.example', 'GET /\\evil.example', 'GET http://evil.example/']
  for (const head of [
    ...[...hosts, more].map(host => `GET / HTTP/1.1\r\nHost: ${host}`),
    ...targets.map(target => `${target} HTTP/1.1\r\nHost: console.example`),
    'GET / HTTP/1.0'
  ]) {
    const { status, location, whole } = await ask(head)
    t.same([status, location], [400, undefined], head)
    t.notMatch(whole, 'evil', head)
  }
  const posted = 'POST /api/auth/admin/login HTTP/1.1\r\nHost: console.example\r\nContent-Length: 9'
  t.match(await ask(posted), { status: 405, location: undefined, answer: /^allow: GET, HEAD/im })
})
