/** The examples of docs/proxies.md, run by their programs in front of a real gateway. */
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t, { type Test } from 'tap'
import { WebSocket } from 'ws'
import { parse } from 'yaml'
import { testAuthority } from '../support/authority.ts'
import { running } from '../support/command.ts'
import { blocksOf } from '../support/doc-blocks.ts'
import { testGateway } from '../support/gateway.ts'
import { freePorts } from '../support/ports.ts'
import { cookieIn, password } from '../support/sign-in.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'
import { message, webSocketUpstream } from '../support/websocket.ts'

const host = 'console.example.com'
const blocks = blocksOf('docs/proxies.md')
const { certificate, key } = testAuthority(t.after, `DNS:${host}`)
const ca = readFileSync(certificate, 'utf8')

/** The block of the page for this program, with other addresses and files. */
function example(language: string, part: RegExp, changes: Readonly<Record<string, string>>) {
  const block = blocks.find(each => each.language === language && part.test(each.text))
  if (block === undefined) throw new Error(`proxies.md has no ${language} block with ${part}`)
  return Object.entries(changes).reduce(
    (changed, [old, next]) => changed.replaceAll(old, next),
    block.text
  )
}

interface Ports {
  /** Of the proxy; what only checks has just `https`, and speaks http there. */
  readonly http: number
  readonly https: number
  readonly gateway: number
  /** HOST:PORT */
  readonly backend: string
}

/** Writes the files of a proxy into the folder. @returns its program and arguments */
type Prepare = (folder: string, ports: Ports) => readonly [string, ...string[]]

function nginx(folder: string, site: string): readonly [string, ...string[]] {
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map(name => `${name}_temp_path ${join(folder, name)};`)
    .join(' ')
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; pid ${join(folder, 'pid')}; worker_processes 1; events {}
http { access_log off; ${temporary} ${site} }`
  )
  return ['nginx', '-p', folder, '-c', 'nginx.conf', '-e', 'stderr']
}

function caddy(folder: string, options: string, site: string): readonly [string, ...string[]] {
  const file = join(folder, 'Caddyfile')
  writeFileSync(file, `{\n  admin off\n${options}\n}\n${site}`)
  return ['caddy', 'run', '--config', file, '--adapter', 'caddyfile']
}

const proxies: Readonly<Record<string, Prepare>> = {
  nginx: (folder, { http, https, gateway }) =>
    nginx(
      folder,
      example('nginx', /listen 443/, {
        'listen 80;': `listen 127.0.0.1:${http};`,
        'listen 443 ': `listen 127.0.0.1:${https} `,
        'server 127.0.0.1:8080;': `server 127.0.0.1:${gateway};`,
        '/etc/ssl/console.example.com.pem': certificate,
        '/etc/ssl/console.example.com.key': key
      })
    ),
  caddy: (folder, { http, https, gateway }) =>
    caddy(
      folder,
      `  http_port ${http}\n  https_port ${https}`,
      example('caddyfile', /^console\.example\.com \{/m, {
        // Its own certificates come from the internet.
        [`${host} {`]: `${host} {\n  tls ${certificate} ${key}`,
        '127.0.0.1:8080': `127.0.0.1:${gateway}`
      })
    ),
  haproxy: (folder, { http, https, gateway }) => {
    const pem = join(folder, 'console.pem')
    writeFileSync(pem, ca + readFileSync(key, 'utf8'))
    const config = example('haproxy', /frontend https/, {
      'bind :80': `bind 127.0.0.1:${http}`,
      'bind :443': `bind 127.0.0.1:${https}`,
      '127.0.0.1:8080': `127.0.0.1:${gateway}`,
      '/etc/haproxy/console.example.com.pem': pem
    })
    writeFileSync(join(folder, 'haproxy.cfg'), `${config}\n`)
    return ['haproxy', '-db', '-f', join(folder, 'haproxy.cfg')]
  }
}

const changesOfChecking = ({ https, gateway, backend }: Ports) => ({
  'listen 8443': `listen 127.0.0.1:${https}`,
  [`${host}:8443`]: `${host}:${https}`,
  '127.0.0.1:8080': `127.0.0.1:${gateway}`,
  '127.0.0.1:9000': backend
})

const checkingProxies: Readonly<Record<string, Prepare>> = {
  nginx: (folder, ports) =>
    nginx(folder, example('nginx', /auth_request/, changesOfChecking(ports))),
  caddy: (folder, ports) =>
    caddy(
      folder,
      '  auto_https off',
      example('caddyfile', /forward_auth/, changesOfChecking(ports))
    )
}

interface Call {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}
type Caller = (path: string, call?: Call) => Promise<IncomingMessage>

/** A caller in clear, or by https as a browser of the public address. */
const callerOf =
  (port: number, name: string, isSecure = false): Caller =>
  async (path, { body = '', headers, ...more } = {}) => {
    const site = isSecure && { 'sec-fetch-site': 'same-origin' }
    const sent = { headers: { host: name, ...site, ...headers }, ...more }
    const options = { host: '127.0.0.1', port, path, agent: false, ...sent }
    const asked = isSecure
      ? httpsRequest({ ...options, ca, servername: name })
      : httpRequest(options)
    asked.end(body)
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    return response
  }

async function signIn(t: Test, call: Caller, username: string) {
  const answer = await call('/api/auth/admin/login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username, password })
  })
  t.equal(answer.statusCode, 200, await text(answer))
  return { headers: answer.headers, cookie: cookieIn(answer.headers['set-cookie']) }
}

/** Starts a proxy, which serves from then on. */
async function start(t: Test, prepare: Prepare, ports: Ports, call: Caller): Promise<void> {
  const folder = t.testdir({})
  const [program, ...words] = prepare(folder, ports)
  // Where Caddy writes its config by itself.
  const proxy = running(t.after, program, words, { XDG_CONFIG_HOME: folder })
  // Killed it would leave its own processes behind.
  t.after(async () => {
    proxy.signal('SIGTERM')
    await proxy.ended
  })
  const ended = proxy.ended.then(() => {
    throw new Error(`${program} ended:\n${proxy.written()}`)
  })
  const serves = until(`${program} answers`, async () => {
    return (await call('/api/account/profile')).resume().statusCode === 401
  })
  await Promise.race([serves, ended])
  ended.catch(() => {})
}

for (const [name, prepare] of Object.entries(proxies)) {
  t.test(`${name} as docs/proxies.md has it`, async t => {
    const [http = 0, https = 0, port = 0] = await freePorts(3)
    const events: Array<() => void> = []
    const backend = await testUpstream(t.after, ({ url }, response) => {
      if (url !== '/api/events') return void response.end('{"ok":1}')
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('data: first\n\n')
      events.push(() => response.end('data: last\n\n'))
    })
    const sockets = await webSocketUpstream(t.after)
    const { server } = parse(example('yaml', /trustedProxies/, {})) as { server: object }
    await testGateway(t.after, {
      gateway: {
        server: { ...server, listen: `127.0.0.1:${port}` },
        session: { cookie: { secure: true } }
      },
      backend: backend.url,
      routes: {
        upstreams: { ws: { url: sockets.url } },
        routes: {
          list: { methods: ['GET', 'POST'] },
          events: {},
          chat: { upstream: 'ws', websocket: {} }
        }
      }
    })
    const call = callerOf(https, host, true)
    await start(t, prepare, { http, https, gateway: port, backend: '' }, call)
    const { headers, cookie } = await signIn(t, call, 'alice')
    t.equal(headers['strict-transport-security'], 'max-age=31536000')
    t.match(cookie, /^__Host-console_sid=/)

    const forged = { cookie, 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'ftp' }
    t.equal(await text(await call('/api/list', { headers: forged })), '{"ok":1}')
    const told = {
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': host,
      'x-user-name': 'alice'
    }
    t.match(backend.seen.at(-1)?.headers, told, 'the back-end is told the client’s own address')

    const body = 'x'.repeat(1_000_000)
    const uploaded = await call('/api/list', { method: 'POST', headers: { cookie }, body })
    t.equal(await text(uploaded), '{"ok":1}')
    t.equal(backend.seen.at(-1)?.body.length, body.length, 'an upload passes')

    const stream = await call('/api/events', { headers: { cookie } })
    const [first] = await once(stream, 'data')
    t.equal(String(first), 'data: first\n\n', 'an event comes before the end of its stream')
    events[0]?.()
    t.equal(await text(stream), 'data: last\n\n')

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

    const redirected = (await callerOf(http, host)('/a?b=c')).resume()
    t.equal(redirected.statusCode, 308)
    t.match(redirected.headers.location, /^https:\/\/console\.example\.com(?::\d+)?\/a\?b=c$/)
  })
}

for (const [name, prepare] of Object.entries(checkingProxies)) {
  t.test(`${name} asks the gateway, as docs/proxies.md has it`, async t => {
    const [proxy = 0, port = 0] = await freePorts(2)
    const backend = await testUpstream(t.after, json(200, { report: 1 }))
    await testGateway(t.after, {
      gateway: {
        server: { listen: `127.0.0.1:${port}` },
        identity: { id: 'x-user-id', username: 'x-user-name', roles: 'x-user-roles' }
      },
      routes: { endpoints: { check: {} } }
    })
    const call = callerOf(proxy, `${host}:${proxy}`)
    const ports = { http: 0, https: proxy, gateway: port, backend: new URL(backend.url).host }
    await start(t, prepare, ports, call)
    const { cookie: admin } = await signIn(t, call, 'alice')
    const { cookie: user } = await signIn(t, call, 'bob')
    const reportsTo = async (headers: Record<string, string>, more: Call = {}) =>
      (await call('/reports/x?a=1', { headers, ...more })).resume().statusCode
    const forged = { 'x-user-id': 'root', 'x-user-roles': 'everything' }
    t.equal(await reportsTo(forged), 401)
    t.equal(await reportsTo({ cookie: user, ...forged }), 403)
    t.equal(backend.seen.length, 0)
    t.equal(await reportsTo({ cookie: admin, ...forged }), 200)
    const [seen] = backend.seen
    t.match(seen, { url: '/reports/x?a=1', headers: { 'x-user-id': '1', 'x-user-roles': /admin/ } })
    const change = { method: 'POST', body: '{}' }
    const headers = { 'cookie': admin, 'content-type': 'application/json' }
    t.equal(await reportsTo({ ...headers, origin: 'https://evil.example' }, change), 403)
    t.equal(await reportsTo(headers, change), 200)
    ;(await call('/api/account/logout', { method: 'POST', headers: { cookie: admin } })).resume()
    t.equal(await reportsTo({ cookie: admin }), 401)
  })
}
