/** Own code: modules of shapes and of upstreams, through HTTP and commands. */
import { spawnSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { run, runProcess } from '../support/command.ts'
import { textFolder } from '../support/config-files.ts'
import { configFolder, type Files, testGateway } from '../support/gateway.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { testUpstream } from '../support/upstream.ts'
import { dial, webSocketUpstream } from '../support/websocket.ts'

const rows = '{"items":[{"id":9007199254740993,"price":1250},{"id":2,"price":90}],"next":3}'

const code = {
  'shapes/orders.js': `
    let calls = 0
    export default async function ({ items }, { route, user }) {
      calls++
      for (const item of items) item.price /= 100
      user?.roles.push('owner')
      return { items, route, who: user?.username ?? null, roles: user?.roles, calls }
    }`,
  'shapes/cases.js': `export default ({ kind }) => cases[kind]()
const cases = {
  throws: () => {
    throw new Error('no such order')
  },
  text: () => { throw 'a text' },
  nothing: () => {},
  circle: () => { const a = {}; a.a = a; return a },
  never: () => new Promise(() => {}),
  null: () => null
}`,
  'shapes/body.mjs': `export default (value, { user }) => ({ ...value, by: user.name })`,
  'upstreams/sign.js': `import { createHmac } from 'node:crypto'
export default async ({ method, path, headers, body = '' }, { route }) => {
  if (path.includes('unfit')) return { 'x-a': 'ü' }
  if (path.includes('broken')) throw new Error('no key')
  return {
    'x-signature': createHmac('sha256', 'key').update(method + path + body).digest('hex'),
    'x-seen': [route, headers['x-user-id'] ?? '-', typeof headers['content-type']].join(' ')
  }
}`
}

const module = './upstreams/sign.js'
const configOf = (backend: string, live: string) =>
  parse(`
gateway: { identity: { prefix: true }, login: { sources: { users-file: { kind: users-file } } } }
backend: { url: '${backend}/base', module: ${module}, headers: { x-fixed: '1' } }
source: { user: { id: next, username: next } }
routes:
  upstreams:
    live: { url: '${live}', module: ${module}, headers: { x-seen: fixed } }
    plain: { url: '${backend}' }
  routes:
    orders: { upstream: plain, shape: orders }
    open: { upstream: plain, shape: orders, access: public }
    cases: { path: /api/cases/*, upstream: plain, shape: cases, access: public }
    sent: { methods: [POST], body: { shape: body } }
    whole:
      parts: { stock: { upstream: b, rewrite: /stock, shape: orders, into: stock } }
      shape: whole
    signed: { path: /api/signed/*, methods: [GET, POST], access: public }
    live: { upstream: live, access: public, websocket: {} }
  shapes:
    orders: [{ module: ./shapes/orders.js }, { rename: { who: name } }, { wrap: envelope }]
    cases: [{ module: shapes/cases.js }]
    body: [{ module: shapes/body.mjs }]
    whole: [{ unwrap: stock.data }, { module: ./shapes/orders.js }]
`) as Files

/** What goes wrong in a module, and what the log says of it. */
const failures: ReadonlyArray<readonly [path: string, code: string, reason: string | RegExp]> = [
  ['cases/throws', 'shape.module', 'shapes/cases.js:4: no such order'],
  ['cases/text', 'shape.module', 'shapes/cases.js: a text'],
  ['cases/nothing', 'shape.module', 'shapes/cases.js: it is undefined, which is no JSON'],
  ['cases/circle', 'shape.module', /^shapes\/cases.js: Converting circular structure/],
  ['cases/never', 'shape.module', 'shapes/cases.js: took longer than 5 s'],
  ['signed/unfit', 'upstream.module', `${module}: "x-a" is no header in lower case`],
  ['signed/broken', 'upstream.module', `${module}:4: no key`]
]

const signatureOf = (text: string) => createHmac('sha256', 'key').update(text).digest('hex')

t.test('own code', async t => {
  const backend = await testUpstream(t.after, (request, response) => {
    const kind = /^\/api\/cases\/(.*)/.exec(request.url ?? '')?.[1]
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(kind === undefined ? rows : JSON.stringify({ kind }))
  })
  const live = await webSocketUpstream(t.after)
  const gateway = await testGateway(t.after, { ...configOf(backend.url, live.url), code })
  const cookie = await gateway.signIn()

  t.test('gets the value, the route and the user, as copies; long numbers are texts', async t => {
    const first = await gateway.call('/api/orders', { cookie })
    t.match(first.json.data, {
      items: [{ price: 12.5 }, { id: 2, price: 0.9 }],
      route: 'orders',
      name: 'alice',
      roles: ['admin', 'user', 'owner']
    })
    t.match(first.text, '"id":"9007199254740993"')
    const again = await gateway.call('/api/orders', { cookie })
    t.same(again.json.data.roles, ['admin', 'user', 'owner'], 'the session is not changed')
    const open = await gateway.call('/api/open')
    t.match(open.json, { data: { route: 'open', name: null } })
    t.ok(open.json.data.calls > again.json.data.calls, 'it is loaded once')
    t.match(await gateway.call('/api/cases/null'), { status: 200, json: null })
  })

  for (const [path, errorCode, reason] of failures) {
    t.test(`${path} is 502, with the reason in the log`, async t => {
      const from = gateway.log.length
      const begun = backend.begun()
      const answer = await gateway.call(`/api/${path}`)
      t.match(answer, { status: 502, json: { errorCode } })
      t.notMatch(answer.text, '.js', 'the client is not told')
      const line = await gateway.logged(({ code: of }) => of === errorCode, from)
      t.match(line, { route: path.split('/')[0], reason })
      t.notMatch(line['reason'], /: (.*): \1$/, 'it is said once')
      if (errorCode === 'upstream.module') t.equal(backend.begun(), begun, 'nothing is sent')
    })
  }

  t.test('bodies of requests and parts have it too', async t => {
    t.equal((await gateway.call('/api/sent', { cookie, json: { a: 1 } })).status, 200)
    t.same(JSON.parse(String(backend.seen.at(-1)?.body)), { a: 1, by: 'Alice Admin' })
    const whole = await gateway.call('/api/whole', { cookie })
    t.match(whole.json, { route: 'whole', items: [{ price: 0.125 }, {}], who: 'alice' })
  })

  t.test('headers of a call to an upstream', async t => {
    const seen = () => backend.seen.at(-1)?.headers ?? {}
    await gateway.call('/api/signed/a%20b?q=1', { headers: { 'x-signature': 'mine' } })
    t.match(seen(), {
      'x-signature': signatureOf('GET/base/api/signed/a%20b?q=1'),
      'x-seen': 'signed - undefined',
      'x-fixed': '1'
    })
    await gateway.call('/api/signed/new', { json: { name: 'é' } })
    t.equal(seen()['x-signature'], signatureOf('POST/base/api/signed/new{"name":"é"}'))
    await gateway.call('/api/whole', { cookie })
    const stock = signatureOf('GET/base/stock')
    t.match(seen(), { 'x-signature': stock, 'x-seen': /^whole \S+ undefined$/ })
    await gateway.attempt('zoe')
    t.match(seen(), {
      'x-signature': signatureOf(`POST/base/login${String(backend.seen.at(-1)?.body)}`),
      'x-seen': 'login - string'
    })
  })

  t.test('headers of a WebSocket; config’s own win', async t => {
    const client = await dial(`${gateway.url}/api/live`, { headers: { origin: gateway.url } })
    client.close()
    t.match(live.requests.at(-1)?.headers, {
      'x-signature': signatureOf('GET/api/live'),
      'x-seen': 'fixed'
    })
  })
})

/** A route whose shape is one module. */
const oneShape = (url: string, file: string) => ({
  upstreams: { b: { url } },
  routes: { r: { path: '/api/r', upstream: 'b', access: 'public', shape: 's' } },
  shapes: { s: [{ module: file }] }
})

const unloadable: ReadonlyArray<readonly [text: string, fault: RegExp]> = [
  [
    'export default () =>\n3 ++ 4',
    /routes.yaml:\d+ shapes.s.0.module: .\/own.js:2: Invalid left-hand/
  ],
  ['throw new Error("at once")\nexport default () => 3', /.\/own.js:1: at once$/],
  ['module.exports = () => 3', /.\/own.js: has no `export default` of a function$/],
  ['export const shape = () => 3', /.\/own.js: has no `export default` of a function$/],
  ['import "./missing.js"\nexport default () => 3', /Cannot find module/]
]

t.test('another content is taken by a reload; what cannot be loaded is refused', async t => {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, {
    routes: oneShape(backend.url, './own.js'),
    code: { 'own.js': 'export default () => 1' }
  })
  const write = (text: string) => writeFileSync(join(gateway.folder, 'own.js'), text)
  const answer = async () => (await gateway.call('/api/r')).text
  t.equal(await answer(), '1')
  write('export default () => 2')
  t.equal(await answer(), '1', 'until it is reloaded')
  t.match(await gateway.reload('operator'), {
    outcome: 'reloaded',
    changes: ['./own.js (own code) has other content']
  })
  t.equal(await answer(), '2')
  for (const [text, fault] of unloadable) {
    write(text)
    t.match(await gateway.reload('operator'), { outcome: 'refused', faults: [fault] })
    t.equal(await answer(), '2')
  }
  write('export default () => 1')
  t.equal((await gateway.reload('operator')).outcome, 'reloaded')
  t.equal(await answer(), '1')
})

t.test('check loads it, also as TypeScript, unless it is told not to', async t => {
  const marker = join(temporaryFolder(), 'loaded')
  const folder = await configFolder({
    routes: {
      ...oneShape('http://127.0.0.1:9', './own.ts'),
      expect: { twice: { request: 'GET /api/r', answer: [4], response: [8] } }
    },
    code: {
      'own.ts': `import { writeFileSync } from 'node:fs'
import type { Shape } from 'console-gateway'
writeFileSync(${JSON.stringify(marker)}, '')
export default (list => list.map((n: number) => n * 2)) as Shape`
    }
  })
  const explain = ['explain', 'GET', '/api/r', '--answer', '-', '-c', folder]
  const unseen = await run(['check', '-c', folder, '--no-code'])
  t.match(unseen, { code: 0, out: /no faults/ })
  t.notOk(existsSync(marker), 'it did not run')
  const checked = await runProcess(['check', '-c', folder, '-c', temporaryFolder()])
  t.match(checked, { code: 0, out: /no faults/ })
  t.ok(existsSync(marker), 'it ran')
  const explained = await run(explain, { input: '[3]' })
  t.match(explained, { code: 0, out: /module: \.\/own\.ts[^]*\[\s*6\s*\]/ })
  writeFileSync(join(folder, 'own.ts'), 'export default list => list[0].id.x')
  const failed = await run(explain, { input: '[3]' })
  t.match(failed, { code: 3, out: /shape.module: .\/own.ts:1: Cannot read properties/ })
  t.match((await run(['check', '-c', folder])).err, /expected \[8\]|got 502 shape.module/)
})

t.test('its types ship with the package', t => {
  const folder = textFolder(t.after, {
    'package.json': '{ "type": "module" }',
    'own.ts': `import type { Shape, UpstreamHeaders } from 'console-gateway'
const shape: Shape<{ items: Array<{ id: string }> }> = ({ items }, { route, user }) => ({
  rows: items.map(({ id }) => id),
  route: route.length,
  mine: user?.roles.includes('admin')
})
export default shape
export const sign: UpstreamHeaders = ({ method, body = '' }) => ({ 'x-s': method + body })`,
    'wrong.ts': `import type { Shape } from 'console-gateway'
export default ((value, { users }) => value) satisfies Shape`
  })
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(process.cwd(), join(folder, 'node_modules/console-gateway'))
  const tsc = join(process.cwd(), 'node_modules/typescript/bin/tsc')
  const options = ['--noEmit', '--strict', '--module', 'nodenext', 'own.ts', 'wrong.ts']
  const spawned = { cwd: folder, encoding: 'utf8' } as const
  const { stdout } = spawnSync(process.execPath, [tsc, ...options], spawned)
  t.match(stdout, /^wrong\.ts\(2,.*Property 'users' does not exist.*\n$/, 'and of own.ts nothing')
  t.end()
})
