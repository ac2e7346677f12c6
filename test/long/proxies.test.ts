/** The examples of docs/proxies.md: run with the programs that they are for, in front of a real gateway. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { parse } from 'yaml'
import { testAuthority } from '../support/authority.ts'
import { blocksOf } from '../support/doc-blocks.ts'
import { testGateway } from '../support/gateway.ts'
import { freePorts } from '../support/ports.ts'
import { callProxy, nginxConfig, type ProxyCall, startProxy } from '../support/proxy-program.ts'
import { password } from '../support/sign-in.ts'
import { testUpstream } from '../support/upstream.ts'
import { message, webSocketUpstream } from '../support/websocket.ts'

const host = 'console.example.com'
const blocks = blocksOf('docs/proxies.md')
const { certificate, key } = testAuthority(t.after, `DNS:${host}`)
const ca = readFileSync(certificate, 'utf8')

function blockOf(language: string, part: string): string {
  const block = blocks.find(each => each.language === language && each.text.includes(part))
  if (block === undefined) throw new Error(`proxies.md has no ${language} block with "${part}"`)
  return block.text
}

interface Ports {
  readonly http: number
  readonly https: number
  /** Of the gateway. */
  readonly gateway: number
}

interface Proxy {
  /** Writes its files into the folder. @returns its program and arguments */
  readonly prepare: (folder: string, ports: Ports) => readonly [string, ...string[]]
}

const proxies: Readonly<Record<string, Proxy>> = {
  nginx: {
    prepare: (folder, ports) => {
      const site = blockOf('nginx', 'listen 443')
        .replace('listen 80;', `listen 127.0.0.1:${ports.http};`)
        .replaceAll('listen 443 ', `listen 127.0.0.1:${ports.https} `)
        .replace('server 127.0.0.1:8080;', `server 127.0.0.1:${ports.gateway};`)
        .replace('/etc/ssl/console.example.com.pem', certificate)
        .replace('/etc/ssl/console.example.com.key', key)
      writeFileSync(join(folder, 'nginx.conf'), nginxConfig(folder, site))
      return ['nginx', '-p', folder, '-c', 'nginx.conf', '-e', 'stderr']
    }
  },
  caddy: {
    prepare: (folder, ports) => {
      const site = blockOf('caddyfile', host)
        // Its own certificates come from the internet.
        .replace(`${host} {`, `${host} {\n  tls ${certificate} ${key}`)
        .replace('127.0.0.1:8080', `127.0.0.1:${ports.gateway}`)
      const options = `{\n  admin off\n  http_port ${ports.http}\n  https_port ${ports.https}\n}\n`
      writeFileSync(join(folder, 'Caddyfile'), options + site)
      return ['caddy', 'run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile']
    }
  },
  haproxy: {
    prepare: (folder, ports) => {
      const pem = join(folder, 'console.pem')
      writeFileSync(pem, ca + readFileSync(key, 'utf8'))
      const config = blockOf('haproxy', 'frontend https')
        .replace('bind :80', `bind 127.0.0.1:${ports.http}`)
        .replace('bind :443', `bind 127.0.0.1:${ports.https}`)
        .replace('127.0.0.1:8080', `127.0.0.1:${ports.gateway}`)
        .replace('/etc/haproxy/console.example.com.pem', pem)
      writeFileSync(join(folder, 'haproxy.cfg'), `${config}\n`)
      return ['haproxy', '-db', '-f', join(folder, 'haproxy.cfg')]
    }
  }
}

const bodyOf = async (response: IncomingMessage) => (await buffer(response)).toString()

/** A call by https, as a browser of the public address makes it. */
async function call(port: number, path: string, { headers, ...more }: ProxyCall = {}) {
  const sent = { ...more, headers: { host, 'sec-fetch-site': 'same-origin', ...headers } }
  return await callProxy({ port, path }, sent, { ca, servername: host })
}

/** Starts a proxy in front of a gateway, both as docs/proxies.md has them. */
async function start(t: Test, { prepare }: Proxy) {
  const [http = 0, https = 0, port = 0] = await freePorts(3)
  const events: Array<() => void> = []
  const backend = await testUpstream(t.after, ({ url }, response) => {
    if (url !== '/api/events') return void response.end('{"ok":1}')
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write('data: first\n\n')
    events.push(() => response.end('data: last\n\n'))
  })
  const sockets = await webSocketUpstream(t.after)
  const { server } = parse(blockOf('yaml', 'trustedProxies')) as { server: object }
  await testGateway(t.after, {
    gateway: {
      server: { ...server, listen: `127.0.0.1:${port}` },
      session: { cookie: { secure: true } }
    },
    routes: {
      upstreams: { b: { url: backend.url }, ws: { url: sockets.url } },
      routes: {
        list: { path: '/api/list', upstream: 'b', methods: ['GET', 'POST'] },
        events: { path: '/api/events', upstream: 'b' },
        chat: { path: '/api/chat', upstream: 'ws', websocket: {} }
      }
    }
  })
  const command = prepare(t.testdir({}), { http, https, gateway: port })
  await startProxy(t.after, command, async () => (await call(https, '/api/session')).statusCode)
  return { http, https, backend, events }
}

for (const [name, proxy] of Object.entries(proxies)) {
  t.test(`${name} as docs/proxies.md has it`, async t => {
    const { http, https, backend, events } = await start(t, proxy)
    const signedIn = await call(https, '/api/auth/admin/login', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username: 'alice', password })
    })
    t.equal(signedIn.statusCode, 200, await bodyOf(signedIn))
    t.equal(signedIn.headers['strict-transport-security'], 'max-age=31536000')
    const [cookie = ''] = (signedIn.headers['set-cookie'] ?? []).map(each => each.split(';')[0])
    t.match(cookie, /^__Host-console_sid=/)

    const forged = { 'cookie': cookie, 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'ftp' }
    const listed = await call(https, '/api/list', { headers: forged })
    t.equal(await bodyOf(listed), '{"ok":1}')
    t.match(
      backend.seen.at(-1)?.headers,
      {
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-proto': 'https',
        'x-forwarded-host': host,
        'x-user-name': 'alice'
      },
      'the back-end is told the client’s own address'
    )

    const body = 'x'.repeat(1_000_000)
    const uploaded = await call(https, '/api/list', { method: 'POST', headers: { cookie }, body })
    t.equal(await bodyOf(uploaded), '{"ok":1}')
    t.equal(backend.seen.at(-1)?.body.length, body.length, 'an upload passes')

    const stream = await call(https, '/api/events', { headers: { cookie } })
    const [first] = await once(stream, 'data')
    t.equal(String(first), 'data: first\n\n', 'an event comes before the end of its stream')
    events[0]?.()
    t.equal(await bodyOf(stream), 'data: last\n\n')

    const client = new WebSocket(`wss://127.0.0.1:${https}/api/chat`, {
      ca,
      servername: host,
      headers: { host, cookie, origin: `https://${host}` }
    } as object)
    await once(client, 'open')
    client.send('hello')
    t.equal(await message(client), 'hello', 'WebSockets pass')
    client.close()
    await once(client, 'close')

    const redirected = await callProxy({ port: http, path: '/a?b=c' }, { headers: { host } })
    redirected.resume()
    t.equal(redirected.statusCode, 308)
    t.match(redirected.headers.location, /^https:\/\/console\.example\.com(?::\d+)?\/a\?b=c$/)
  })
}
