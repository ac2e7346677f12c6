/** `explain --answer` and `--live`: what becomes of a response, and how back-ends are asked. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { run } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'
import { configFolder } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

const success = { code: 0, data: [{ a: 1, secret: 'x' }] }

const gatewayFile = 'server: { hosts: [console.example.com], trustedProxies: [10.0.0.0/8] }'
const steps = [
  { open: 'code-data' },
  { each: [{ rename: { a: 'b' } }, { drop: ['secret'] }] },
  { wrap: 'list' }
]

function folderOf(t: Test, upstream: object, route: object = {}): string {
  const r = { path: '/api/r', access: 'public', upstream: 'b', rewrite: '/list', shape: 's' }
  return textFolder(t.after, {
    'gateway.yaml': gatewayFile,
    'routes.yaml': stringify({
      upstreams: { b: upstream },
      routes: {
        r: { ...r, ...route },
        plain: { path: '/api/plain', upstream: 'b', access: 'public' }
      },
      shapes: { s: steps, picked: [{ open: 'code-data' }, { each: [{ pick: ['a'] }] }] }
    })
  })
}

/** @param words after the path */
const explain = async (folder: string, words: readonly string[], options = {}) =>
  await run(['explain', 'GET', '/api/r', '-c', folder, ...words], options)
const answered = async (folder: string, input: string | Uint8Array, ...words: string[]) =>
  await explain(folder, ['--answer', '-', ...words], { input })

t.test('what each operation did is shown, from a file or standard input', async t => {
  const folder = folderOf(t, { url: 'http://b.internal' })
  const file = join(folder, 'answer.json')
  writeFileSync(file, JSON.stringify(success))
  const { code, out } = await explain(folder, ['--answer', file])
  t.equal(code, 0)
  t.match(out, /\nshape s {2}\S+routes\.yaml:\d+\n {2}1\. open: code-data\n {5}~ \(all\): /)
  t.match(
    out,
    /2\. each:\n[^]*rename:[^]*- 0\.a\n {5}\+ 0\.b: 1\n[^]*- 0\.secret\n[^]*4\. wrap: list\n/
  )
  t.match(JSON.parse(out.slice(out.indexOf('\n{'))), { success: true, data: [{ b: 1 }], total: 1 })
  const asJson = await answered(folder, JSON.stringify(success), '--json')
  t.match(JSON.parse(asJson.out), {
    shape: { before: success, operations: [{ operation: { open: 'code-data' } }, {}, {}, {}] },
    response: { status: 200, body: /"data":\[\{"b":1\}\]/ }
  })
})

t.test('ids beyond 2^53 keep their digits, from a file and from the upstream', async t => {
  const long = '{"code":0,"data":[{"a":1234567890123456789}]}'
  const backend = await testUpstream(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(long)
  })
  const folder = folderOf(t, { url: backend.url })
  for (const words of [['--answer', '-'], ['--live']]) {
    const { out } = await explain(folder, words, { input: long })
    t.match(out, /"b": 1234567890123456789\n/, words.join(' '))
  }
})

t.test('a file may begin with a byte order mark, as Windows writes it', async t => {
  const folder = folderOf(t, { url: 'http://b.internal' })
  const text = `\ufeff${JSON.stringify(success)}`
  for (const input of [Buffer.from(text), Buffer.from(text, 'utf16le')]) {
    const { code, out, err } = await answered(folder, input)
    t.equal(code, 0, err)
    t.match(out, '"total": 1')
  }
})

t.test('what a terminal would obey in names, values and messages is shown', async t => {
  const title = '\u001b]0;owned\u0007'
  const shown = async (input: object, route: object, ...words: string[]) => {
    const folder = folderOf(t, { url: 'http://b.internal' }, route)
    const { out, err } = await answered(folder, JSON.stringify(input), ...words)
    t.notMatch(out + err, /[\u0000-\u0009\u000b-\u001f\u0080-\u009f]/, words.join(' '))
    return out
  }
  const rows = { code: 0, data: [{ a: '\u009b2J', [title]: 2, secret: 1 }] }
  t.match(await shown(rows, { shape: 'picked' }), '- 0.\\u001b]0;owned\\u0007')
  t.match(await shown(rows, {}), '+ 0.b: "\\u009b2J"')
  t.match(await shown({ code: 404, msg: title }, {}), 'a failure: 404, \\u001b]0;owned')
  t.match(JSON.parse(await shown(rows, {}, '--json')), { shape: { before: rows } })
})

t.test('an answer that tells a failure ends there', async t => {
  const folder = folderOf(t, { url: 'http://b.internal' })
  const { code, out } = await answered(folder, '{"code": 404, "msg": "gone"}')
  t.equal(code, 3)
  t.match(out, '1. open: code-data\n     a failure: 404, gone\n')
  t.notMatch(out, '2. each')
  t.match(out, '→ answered with 404 upstream.error')
})

t.test(
  '--live asks the upstream with its headers, its path and the query of the route',
  async t => {
    const backend = await testUpstream(t.after, json(200, success))
    const upstream = {
      url: `${backend.url}/v1`,
      headers: { 'tenant-id': '7', 'x-api-key': '${API_KEY}' },
      passHeaders: ['accept']
    }
    const folder = folderOf(t, upstream, { query: { set: { site: 'a' } } })
    const header = ['authorization: Bearer x', 'X_Site.Id: 3', 'x-api-key: another']
    const words = ['--live', ...header.flatMap(each => ['--header', each])]
    const { code, out, err } = await explain(folder, words, { env: { API_KEY: 'the-key' } })
    t.equal(code, 0, err)
    t.match(out, '"total": 1')
    const { url, headers } = backend.seen.at(-1) ?? {}
    t.equal(url, '/v1/list?site=a')
    t.match(headers, {
      'tenant-id': '7',
      'x-api-key': 'the-key',
      'accept': 'application/json',
      'authorization': 'Bearer x',
      'x_site.id': '3',
      'accept-encoding': 'identity',
      'x-forwarded-host': 'console.example.com',
      'x-request-id': /^[0-9a-f-]{36}$/
    })
    t.notOk(headers?.['user-agent'], 'passHeaders does not name it')
  }
)

t.test('every --header is sent, and one that cannot be sent is refused before', async t => {
  const backend = await testUpstream(t.after, json(200, success))
  const folder = folderOf(t, { url: backend.url })
  const ask = (...headers: string[]) =>
    explain(folder, ['--live', ...headers.flatMap(header => ['--header', header])])
  t.equal((await ask('Authorization: Bearer x', 'tenant-id:1')).code, 0)
  t.match(backend.seen[0]?.headers, { 'authorization': 'Bearer x', 'tenant-id': '1' })
  for (const [headers, problem] of [
    [['Bearer of-secret'], '--header takes a name and a value, such as "tenant-id: 1".'],
    [['authorization:'], '--header: the value of "authorization" is not printable ASCII'],
    [['tenant id: of-secret'], '--header takes a name and a value'],
    [['name: Müller'], '--header: the value of "name" is not printable ASCII'],
    [['a: 1', 'A: 2'], '--header: "a" has two values.'],
    [['Connection: close'], '--header: "connection" belongs to the connection']
  ] as const) {
    const { code, err } = await ask(...headers)
    t.equal(code, 2, headers.join())
    t.match(err, problem)
    t.notMatch(err, 'of-secret', 'a secret is not repeated')
  }
  t.equal(backend.seen.length, 1)
})

t.test('what makes no sense is told, without a stack', async t => {
  const folder = folderOf(t, { url: 'http://127.0.0.1:9' })
  for (const [words, code, message] of [
    [['--live'], 3, 'answered with 502 upstream.refused'],
    [['--answer', '/nowhere'], 1, '/nowhere cannot be read (ENOENT).'],
    [
      ['--answer', '-'],
      1,
      /^Standard input: the response is not valid JSON: expected property name/
    ]
  ] as const) {
    const ran = await explain(folder, words, { input: '{' })
    t.equal(ran.code, code, words.join(' '))
    t.match(ran.out + ran.err, message)
    t.notMatch(ran.err, /^ +at /m)
  }
})

t.test('an error or a redirect of the upstream is said, and nothing is shaped', async t => {
  const backend = await testUpstream(t.after, (_request, response, { url }) => {
    const status = Number(url.slice(1))
    const type = { 'content-type': 'application/json', 'location': 'http://other.example/' }
    response.writeHead(status, type).end(JSON.stringify({ ...success, message: 'no \u009b2J' }))
  })
  for (const [status, code, message] of [
    [302, 3, '502 upstream.redirect'],
    [401, 3, /401 upstream\.error[^]*no \\u009b2J/],
    [500, 3, '500 upstream.error'],
    [204, 0, '→ answered with 204'],
    [206, 3, /206, although neither a condition nor a range was sent/]
  ] as const) {
    const folder = folderOf(t, { url: backend.url }, { rewrite: `/${status}` })
    const ran = await explain(folder, ['--live'])
    t.equal(ran.code, code, String(status))
    t.match(ran.out, message)
    t.notMatch(ran.out, '1. open')
    t.notMatch(ran.out, /[\u0080-\u009f]/)
  }
})

t.test('what is not JSON, or too large, is said with its place', async t => {
  const backend = await testUpstream(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/html' }).end('<html>')
  })
  t.match(await explain(folderOf(t, { url: backend.url }), ['--live']), {
    code: 3,
    out: /shape\.not-json: [^]*it begins as HTML or XML does, and its type is text\/html/
  })
  const large = await testUpstream(t.after, json(200, { code: 0, data: 'x'.repeat(2000) }))
  const small = folderOf(t, { url: large.url })
  writeFileSync(join(small, 'limits.yaml'), 'sizes: { shape: 1KiB }')
  t.match(await explain(small, ['--live']), { code: 3, out: /shape\.too-large/ })
})

t.test('a response has its parts as the gateway gives it to the console', async t => {
  const orders = await testUpstream(t.after, (request, response, seen) => {
    const isPart = seen.url.startsWith('/count')
    json(200, { code: 0, data: isPart ? { unread: 3 } : [{ id: 1 }] })(request, response, seen)
  })
  const broken = await testUpstream(t.after, json(500, { message: 'down \u009b2J' }))
  const folder = await configFolder({
    gateway: { server: { mount: '/console' } },
    routes: {
      upstreams: {
        orders: { url: orders.url },
        broken: { url: broken.url, credential: 'none' }
      },
      routes: {
        whole: {
          path: '/api/orders/:id',
          upstream: 'orders',
          rewrite: '/orders/:id',
          access: 'public',
          into: 'orders',
          shape: 'wrapped',
          parts: {
            unread: { upstream: 'orders', rewrite: '/count', shape: 'opened', into: 'unread' },
            news: {
              upstream: 'broken',
              rewrite: '/news',
              into: 'news',
              required: false,
              default: []
            }
          }
        }
      },
      shapes: {
        opened: [{ open: 'code-data' }, { unwrap: 'unread' }],
        wrapped: [{ drop: ['orders.code'] }, { wrap: 'envelope' }]
      }
    }
  })
  const ask = ['explain', 'GET', '/console/api/orders/7?full=1', '-c', folder]
  const traced = await run([...ask, '--live', '--json'])
  t.equal(traced.code, 0, traced.err)
  const explanation = JSON.parse(traced.out)
  t.match(JSON.parse(explanation.response.body), { missing: ['news'], data: { unread: 3 } })
  t.match(explanation, {
    record: { missing: ['news'] },
    shape: { before: { orders: { code: 0 }, unread: 3, news: [] }, operations: [{}, {}] }
  })
  const headers = ['--header', 'authorization: Bearer x', '--header', 'x-tenant: 7']
  broken.seen.length = 0
  t.match(await run([...ask, '--live', ...headers]), { code: 0, out: /missing: news/ })
  const [asked] = broken.seen
  t.equal(asked?.headers['x-tenant'], '7', 'as of a client')
  t.equal(asked?.headers.authorization, undefined, 'a back-end without credential gets none')
  t.match(orders.seen.at(-1)?.headers, { 'authorization': 'Bearer x', 'x-tenant': '7' })
  t.match(await run([...ask, '--answer', '-'], { input: '{}' }), {
    code: 1,
    err: /The route adds parts to the response before it is shaped: request all of them by --live/
  })
})
