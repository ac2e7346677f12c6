/** The examples of docs/proxies.md: run with the programs that they are for. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { blocksOf } from '../support/doc-blocks.ts'
import { testGateway } from '../support/gateway.ts'
import { freePorts } from '../support/ports.ts'
import { callProxy, nginxConfig, type ProxyCall, startProxy } from '../support/proxy-program.ts'
import { cookieIn, password } from '../support/sign-in.ts'
import { json, testUpstream } from '../support/upstream.ts'

const host = 'console.example.com'
const blocks = blocksOf('docs/proxies.md')

interface Ports {
  readonly proxy: number
  readonly gateway: number
  readonly backend: string
}

function example(language: string, { proxy, gateway, backend }: Ports): string {
  const block = blocks.find(
    each => each.language === language && /forward_auth|auth_request/.test(each.text)
  )
  if (block === undefined) throw new Error(`docs/proxies.md has no ${language} block`)
  return block.text
    .replace('listen 8443', `listen 127.0.0.1:${proxy}`)
    .replace(`${host}:8443`, `${host}:${proxy}`)
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${gateway}`)
    .replaceAll('127.0.0.1:9000', backend)
}

const proxies: Readonly<Record<string, (folder: string, ports: Ports) => [string, ...string[]]>> = {
  nginx: (folder, ports) => {
    writeFileSync(join(folder, 'nginx.conf'), nginxConfig(folder, example('nginx', ports)))
    return ['nginx', '-p', folder, '-c', 'nginx.conf', '-e', 'stderr']
  },
  caddy: (folder, ports) => {
    const options = '{\n  admin off\n  auto_https off\n}\n'
    writeFileSync(join(folder, 'Caddyfile'), options + example('caddyfile', ports))
    return ['caddy', 'run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile']
  }
}

async function call(port: number, path: string, { headers, ...more }: ProxyCall = {}) {
  const sent = { ...more, headers: { host: `${host}:${port}`, ...headers } }
  const response = await callProxy({ port, path }, sent)
  return { status: response.statusCode, headers: response.headers, body: await text(response) }
}

for (const [name, prepare] of Object.entries(proxies)) {
  t.test(`${name} asks the gateway, as docs/proxies.md has it`, async t => {
    const [proxy = 0, port = 0] = await freePorts(2)
    const backend = await testUpstream(t.after, json(200, { report: 1 }))
    await testGateway(t.after, {
      gateway: {
        server: { listen: `127.0.0.1:${port}` },
        session: { cookie: { secure: false } },
        identity: { id: 'x-user-id', username: 'x-user-name', roles: 'x-user-roles' }
      },
      routes: { endpoints: { check: {} } }
    })
    const ports = { proxy, gateway: port, backend: new URL(backend.url).host }
    const command = prepare(t.testdir({}), ports)
    await startProxy(t.after, command, async () => (await call(proxy, '/reports/x')).status)

    const signIn = async (username: string) => {
      const { status, headers } = await call(proxy, '/api/auth/admin/login', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ username, password })
      })
      t.equal(status, 200)
      return cookieIn(headers['set-cookie'])
    }
    const [admin, user] = [await signIn('alice'), await signIn('bob')]
    const forged = { 'x-user-id': 'root', 'x-user-roles': 'everything' }
    t.equal((await call(proxy, '/reports/x', { headers: forged })).status, 401)
    t.equal((await call(proxy, '/reports/x', { headers: { cookie: user, ...forged } })).status, 403)
    t.equal(backend.seen.length, 0)
    const passed = await call(proxy, '/reports/x?a=1', { headers: { cookie: admin, ...forged } })
    t.match(passed, { status: 200, body: /report/ })
    const seen = backend.seen[0]
    t.equal(seen?.url, '/reports/x?a=1')
    t.not(seen?.headers['x-user-id'], 'root')
    t.match(seen?.headers['x-user-roles'], /admin/)
    const change = { method: 'POST', body: '{}' }
    const origins = { own: `http://${host}:${proxy}`, evil: 'https://evil.example' }
    const headers = { 'cookie': admin, 'content-type': 'application/json' }
    const evil = { ...headers, origin: origins.evil }
    t.equal((await call(proxy, '/reports/x', { ...change, headers: evil })).status, 403)
    t.equal((await call(proxy, '/reports/x', { ...change, headers })).status, 200)
    await call(proxy, '/api/account/logout', { method: 'POST', headers: { cookie: admin } })
    t.equal((await call(proxy, '/reports/x', { headers: { cookie: admin } })).status, 401)
  })
}

t.end()
