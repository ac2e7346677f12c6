/** `shape --live` and `contract --live`: back-ends are asked as the gateway asks them. */
import { copyFileSync, readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import type { TLSSocket } from 'node:tls'
import { gzipSync } from 'node:zlib'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { testAuthority } from '../support/authority.ts'
import { run } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'
import { listen } from '../support/ports.ts'
import { json, testUpstream } from '../support/upstream.ts'

const success = { code: 0, data: [{ id: 1 }] }

function folderOf(t: Test, upstream: object, more: { route?: object } = {}) {
  return textFolder(t.after, {
    'gateway.yaml': 'server: { hosts: [console.example.com], trustedProxies: [10.0.0.0/8] }',
    'routes.yaml': stringify({
      upstreams: { b: upstream },
      routes: {
        r: {
          path: '/api/r',
          upstream: 'b',
          rewrite: '/list',
          shape: 's',
          contract: { schema: { type: 'array' } },
          ...more.route
        }
      },
      shapes: { s: [{ open: 'code-data' }, { wrap: 'list' }] }
    })
  })
}

t.test('the upstream gets its headers, its path and the query of the route', async t => {
  const backend = await testUpstream(t.after, json(200, success))
  const folder = folderOf(
    t,
    {
      url: `${backend.url}/v1`,
      headers: { 'tenant-id': '7' },
      secretHeaders: { 'x-api-key': '${API_KEY}' },
      passHeaders: ['accept']
    },
    { route: { query: { set: { site: 'a' } } } }
  )
  const env = { API_KEY: 'the-key' }
  const header = ['--header', 'authorization: Bearer x', '--header', 'X_Site.Id: 3']
  const { code, err } = await run(['shape', 'r', '--live', '-c', folder, ...header], { env })
  t.equal(code, 0, err)
  t.equal(err, `200 from ${backend.url}/v1\n`)
  const { url, headers } = backend.seen.at(-1) ?? {}
  t.equal(url, '/v1/list?site=a')
  t.match(headers, {
    'tenant-id': '7',
    'x-api-key': 'the-key',
    'accept': 'application/json',
    'authorization': 'Bearer x',
    'x_site.id': '3',
    'accept-encoding': 'identity',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'console.example.com',
    'x-request-id': /^[0-9a-f-]{36}$/
  })
  t.notOk(headers?.['user-agent'], 'passHeaders does not name it')
  const other = ['shape', 'r', '--live', '-c', folder, '--header', 'X-API-Key: another']
  t.match(await run(other, { env }), {
    code: 2,
    err: '--header: "x-api-key" is sent as the config of the upstream says.'
  })
  t.equal(backend.seen.length, 1)
})

t.test('an https upstream is asked with its authority, certificate and server name', async t => {
  const server = testAuthority(t.after, 'DNS:orders.test')
  const client = testAuthority(t.after, 'DNS:gateway.test')
  const pem = (file: string) => readFileSync(file, 'utf8')
  const names: unknown[] = []
  const backend = createServer(
    {
      key: pem(server.key),
      cert: pem(server.certificate),
      ca: pem(client.certificate),
      requestCert: true
    },
    (request, response) => {
      names.push((request.socket as TLSSocket).servername)
      response.end(JSON.stringify(success))
    }
  )
  const url = `https://127.0.0.1:${await listen(backend)}`
  t.after(() => {
    backend.closeAllConnections()
    backend.close()
  })
  const tls = { ca: 'server.pem', certificate: 'client.pem', serverName: 'orders.test' }
  const folder = folderOf(t, { url, tls: { ...tls, key: '${CLIENT_KEY}' } })
  copyFileSync(server.certificate, join(folder, 'server.pem'))
  copyFileSync(client.certificate, join(folder, 'client.pem'))
  const env = { CLIENT_KEY: pem(client.key) }
  const { code, out, err } = await run(['shape', 'r', '--live', '-c', folder], { env })
  t.equal(code, 0, err)
  t.match(out, '"total": 1')
  t.same(names, ['orders.test'])
  const untrusted = folderOf(t, { url })
  t.match(await run(['shape', 'r', '--live', '-c', untrusted]), {
    code: 1,
    err: /upstream\.refused: https:.* does not answer: .*self-signed/
  })
})

t.test('an error or a redirect of the upstream is said, and nothing is shaped', async t => {
  const backend = await testUpstream(t.after, (_request, response, { url }) => {
    const status = Number(url.slice(1))
    const type = { 'content-type': 'application/json', 'location': '/elsewhere' }
    response.writeHead(status, type).end(JSON.stringify({ ...success, message: 'no \u009b2J' }))
  })
  const shaping = ['shape', 'r']
  for (const [words, status, message] of [
    [shaping, 302, 'The upstream answered with a redirect'],
    [shaping, 401, /answered 401: an error.* It says: no \\u009b2J Add its credential by --header/],
    [['shape', 'r', '--json'], 401, 'answered 401'],
    [shaping, 500, 'answered 500'],
    [shaping, 204, 'The upstream answered without a body'],
    [shaping, 206, 'a partial response (206)']
  ] as const) {
    const folder = folderOf(t, { url: backend.url }, { route: { rewrite: `/${status}` } })
    const { code, out, err } = await run([...words, '--live', '-c', folder])
    t.equal(code, 1, `${status} ${words.join(' ')}`)
    t.equal(out, '')
    t.match(err, `${status} from ${backend.url}\n`)
    t.match(err, message)
    t.notMatch(err, /[\u0080-\u009f]/)
  }
})

t.test('charset and coding of a response are read as the gateway reads them', async t => {
  const encoded = Buffer.concat([
    Buffer.from('{"code":0,"data":[{"name":"'),
    Buffer.from([0xd6, 0xd0, 0xce, 0xc4]),
    Buffer.from('","id":12345678901234567890}]}')
  ])
  const backend = await testUpstream(t.after, (_request, response) => {
    const type = { 'content-type': 'application/json; charset=gbk', 'content-encoding': 'gzip' }
    response.writeHead(200, type).end(gzipSync(encoded))
  })
  const folder = folderOf(t, { url: backend.url })
  const { out, err } = await run(['shape', 'r', '--live', '-c', folder])
  t.match(out, /\nafter\n[^]*"name": "中文",\n +"id": 12345678901234567890\n/, err)
})

t.test('what is not JSON, or too large, is said with its place', async t => {
  const backend = await testUpstream(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
  })
  const folder = folderOf(t, { url: backend.url })
  t.match(await run(['shape', 'r', '--live', '-c', folder]), {
    code: 1,
    out: '',
    err: /shape\.not-json: .*it begins as HTML or XML does, and its type is text\/html/
  })
  const large = await testUpstream(t.after, json(200, { code: 0, data: 'x'.repeat(2000) }))
  const small = folderOf(t, { url: large.url }, { route: { maxShaped: '1KiB' } })
  t.match(await run(['shape', 'r', '--live', '-c', small]), { code: 1, err: /shape\.too-large/ })
})

t.test('a path that cannot be sent is refused', async t => {
  const backend = await testUpstream(t.after, json(200, success))
  const folder = folderOf(t, { url: backend.url }, { route: { path: '/api/r/*', rewrite: '/l/*' } })
  const ask = (...words: string[]) => run(['shape', 'r', '--live', '-c', folder, ...words])
  t.match(await ask(), { code: 2, err: 'choose one with --path' })
  t.match(await ask('--path', 'l/1'), { code: 2, err: '--path begins with "/"' })
  t.match(await ask('--path', '/l/a b'), { code: 2, err: '--path begins with "/"' })
  t.match(await ask('--path', '/l/1?x=2'), { code: 0 })
  t.equal(backend.seen[0]?.url, '/l/1?x=2')
})
