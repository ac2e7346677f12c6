/** Own code: modules of shapes and of upstreams, through HTTP and commands. */
import { createHmac } from 'node:crypto'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { run, runProcess } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { password } from '../support/sign-in.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { testUpstream } from '../support/upstream.ts'

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))
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
  rejects: async () => null.member,
  text: () => { throw 'a text' },
  nothing: () => {},
  number: () => 1n,
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

const upstreams = (url: string) => ({
  b: { url: `${url}/base`, module: './upstreams/sign.js', headers: { 'x-fixed': '1' } },
  plain: { url }
})

const routes = {
  orders: { path: '/api/orders', upstream: 'plain', shape: 'orders' },
  open: { path: '/api/open', upstream: 'plain', shape: 'orders', access: 'public' },
  cases: {
    path: '/api/cases/*',
    upstream: 'plain',
    shape: 'cases',
    access: 'public'
  },
  sent: {
    path: '/api/sent',
    methods: ['POST'],
    upstream: 'b',
    body: { shape: 'body' }
  },
  whole: {
    path: '/api/whole',
    parts: { stock: { upstream: 'b', rewrite: '/stock', shape: 'orders', into: 'stock' } },
    shape: 'whole'
  },
  signed: {
    path: '/api/signed/*',
    methods: ['GET', 'POST'],
    upstream: 'b',
    access: 'public',
    websocket: {}
  }
}

const shapes = {
  orders: [{ module: './shapes/orders.js' }, { rename: { who: 'name' } }, { wrap: 'envelope' }],
  cases: [{ module: 'shapes/cases.js' }],
  body: [{ module: 'shapes/body.mjs' }],
  whole: [{ unwrap: 'stock.data' }, { module: './shapes/orders.js' }]
}

const signatureOf = (text: string) => createHmac('sha256', 'key').update(text).digest('hex')

t.test('own code', async t => {
  const backend = await testUpstream(t.after, (request, response) => {
    const kind = /^\/api\/cases\/(.*)/.exec(request.url ?? '')?.[1]
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(kind === undefined ? rows : JSON.stringify({ kind }))
  })
  const gateway = await testGateway(t.after, {
    gateway: {
      identity: { prefix: true },
      login: {
        sources: [
          { kind: 'users-file', file: 'users.yaml', decides: true },
          {
            kind: 'upstream-login',
            upstream: 'b',
            path: '/login',
            user: { id: 'next', username: 'next' }
          }
        ]
      }
    },
    routes: { upstreams: upstreams(backend.url), routes, shapes },
    code
  })
  const cookie = await gateway.signIn()

  t.test('gets the value, the route and the user, as copies; long numbers are texts', async t => {
    const first = await gateway.call('/api/orders', { cookie })
    t.equal(first.status, 200, first.text)
    t.match(first.json, {
      data: {
        items: [
          { id: '9007199254740993', price: 12.5 },
          { id: 2, price: 0.9 }
        ],
        route: 'orders',
        name: 'alice',
        roles: ['admin', 'user', 'owner']
      }
    })
    const again = await gateway.call('/api/orders', { cookie })
    t.same(again.json.data.roles, ['admin', 'user', 'owner'], 'the session is not changed')
    const open = await gateway.call('/api/open')
    t.match(open.json, { data: { route: 'open', name: null } })
    t.ok(open.json.data.calls > again.json.data.calls, 'it is loaded once')
  })

  for (const [kind, reason] of [
    ['throws', 'shapes/cases.js:4: no such order'],
    ['rejects', /^shapes\/cases.js:6: Cannot read properties of null/],
    ['text', 'shapes/cases.js: a text'],
    ['nothing', 'shapes/cases.js: it is undefined, which is no JSON'],
    ['number', /^shapes\/cases.js: .*BigInt/],
    ['circle', /^shapes\/cases.js: Converting circular structure/],
    ['never', 'shapes/cases.js: took longer than 5 s']
  ] as const) {
    t.test(`${kind} is 502, with the reason in the log`, async t => {
      const from = gateway.log.length
      const answer = await gateway.call(`/api/cases/${kind}`)
      t.match(answer, { status: 502, json: { errorCode: 'shape.module' } })
      t.notMatch(answer.text, 'cases.js', 'the client is not told')
      const line = await gateway.logged(({ code: of }) => of === 'shape.module', from)
      t.match(line, { route: 'cases', reason })
      t.notMatch(line['reason'], /: (.*): \1$/, 'it is said once')
    })
  }

  t.test('null is JSON', async t => {
    t.match(await gateway.call('/api/cases/null'), { status: 200, json: null })
  })

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
    t.match(seen(), {
      'x-signature': signatureOf('GET/base/stock'),
      'x-seen': /^whole \S+ undefined$/
    })
    await gateway.call('/api/auth/admin/login', { json: { username: 'zoe', password } })
    const { headers: login, body } = backend.seen.at(-1) ?? {}
    t.equal(login?.['x-signature'], signatureOf(`POST/base/login${String(body)}`))
    t.equal(login?.['x-seen'], 'login - string')
  })

  t.test('headers that are none, and a throw, are 502, and nothing is sent', async t => {
    const before = backend.begun()
    for (const [path, reason] of [
      ['unfit', './upstreams/sign.js: "x-a" is no header in lower case with text in ASCII'],
      ['broken', './upstreams/sign.js:4: no key']
    ] as const) {
      const from = gateway.log.length
      t.match(await gateway.call(`/api/signed/${path}`), {
        status: 502,
        json: { errorCode: 'upstream.module' }
      })
      t.match(await gateway.logged(({ code: of }) => of === 'upstream.module', from), { reason })
    }
    t.equal(backend.begun(), before)
  })
})

t.test('a WebSocket has the headers of own code', async t => {
  const server = new WebSocketServer({ host: '127.0.0.1', port: 0 })
  await new Promise(resolve => server.once('listening', resolve))
  t.after(() => server.close())
  const connected = new Promise<string>(resolve => {
    server.once('connection', (socket, { headers }) => {
      resolve([headers['x-signature'], headers['x-seen']].join(' '))
      socket.close()
    })
  })
  const { port } = server.address() as { port: number }
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: {
        b: {
          url: `http://127.0.0.1:${port}`,
          module: './upstreams/sign.js',
          headers: { 'x-seen': 'fixed' }
        }
      },
      routes: { signed: routes.signed }
    },
    code
  })
  const origin = gateway.url
  const client = new WebSocket(`${origin.replace('http', 'ws')}/api/signed/live`, { origin })
  client.on('error', () => {})
  t.equal(await connected, `${signatureOf('GET/api/signed/live')} fixed`, 'config’s own win')
})

t.test('another content is taken by a reload; what cannot be loaded is refused', async t => {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: { r: { path: '/api/r', upstream: 'b', access: 'public', shape: 's' } },
      shapes: { s: [{ module: './own.js' }] }
    },
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
  for (const [text, fault] of [
    [
      'export default () =>\n3 ++ 4',
      /routes.yaml:\d+ shapes.s.0.module: .\/own.js:2: Invalid left-hand/
    ],
    ['throw new Error("at once")\nexport default () => 3', /.\/own.js:1: at once$/],
    ['module.exports = () => 3', /.\/own.js: has no `export default` of a function$/],
    ['export const shape = () => 3', /.\/own.js: has no `export default` of a function$/],
    ['import "./missing.js"\nexport default () => 3', /Cannot find module/]
  ] as const) {
    write(text)
    const outcome = await gateway.reload('operator')
    t.equal(outcome.outcome, 'refused')
    t.match('faults' in outcome ? outcome.faults : [], [fault])
    t.equal(await answer(), '2')
  }
  write('export default () => 1')
  t.equal((await gateway.reload('operator')).outcome, 'reloaded')
  t.equal(await answer(), '1')
})

t.test('check loads it, and says what no check finds', async t => {
  const marker = join(temporaryFolder(), 'loaded')
  const folder = await configFolder({
    routes: {
      upstreams: { b: { url: 'http://127.0.0.1:9' } },
      routes: { r: { path: '/api/r', upstream: 'b', shape: 's', access: 'public' } },
      shapes: { s: [{ module: './own.js' }] },
      expect: { twice: { request: 'GET /api/r', answer: [4], response: [8] } }
    },
    code: {
      'own.js': `import { writeFileSync } from 'node:fs'
writeFileSync(${JSON.stringify(marker)}, '')
export default list => list.map(n => n * 2)`
    }
  })
  const unseen = await run(['check', '-c', folder, '--no-code'])
  t.match(unseen, { code: 0, out: /own code: .\/own.js: not loaded, and no expectation tried/ })
  t.throws(() => symlinkSync(marker, join(marker, 'x')), 'it did not run')
  const checked = await run(['check', '-c', folder])
  t.match(checked, { code: 0, out: /own code: .\/own.js: loaded; a loop without an end/ })
  const explained = await run(['explain', 'GET', '/api/r', '--answer', '-', '-c', folder], {
    input: '[3]'
  })
  t.match(explained, { code: 0, out: /module: \.\/own\.js[^]*\[\s*6\s*\]/ })
  writeFileSync(join(folder, 'own.js'), 'export default list => list[0].id.x')
  const failed = await run(['explain', 'GET', '/api/r', '--answer', '-', '-c', folder], {
    input: '[3]'
  })
  t.match(failed, { code: 3, out: /shape.module: .\/own.js:1: Cannot read properties/ })
  t.match((await run(['check', '-c', folder])).err, /expected \[8\]|got 502 shape.module/)
})

t.test('what check refuses', async t => {
  const folder = await configFolder({
    routes: {
      upstreams: { b: { url: 'http://127.0.0.1:9', module: '/etc/x.js' } },
      routes: { r: { path: '/api/r', upstream: 'b', shape: 's', access: 'public' } },
      shapes: {
        s: [{ module: '../own.js' }, { each: [{ module: './own.js' }] }, { module: './missing.js' }]
      }
    },
    code: { 'own.js': 'export default value => value' }
  })
  const { code: exit, err } = await run(['check', '-c', folder])
  t.equal(exit, 1)
  t.match(err, /shapes.s.0.module: .*below the config folder/)
  t.match(err, /upstreams.b.module: .*below the config folder/)
  t.match(err, /shapes.s.2.module: the file cannot be read \(ENOENT\)/)
  const nested = await configFolder({
    routes: { shapes: { s: [{ each: [{ module: './own.js' }] }] } },
    code: { 'own.js': 'export default value => value' }
  })
  t.match(
    (await run(['check', '-c', nested])).err,
    /`module` is for the whole response: it cannot stand within another operation/
  )
})

t.test('its types ship with the package', async t => {
  const folder = temporaryFolder()
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules', 'console-gateway'))
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(
    join(folder, 'own.ts'),
    `import type { Shape, UpstreamHeaders } from 'console-gateway'
interface Page { items: Array<{ id: string }> }
const shape: Shape<Page> = ({ items }, { route, user }) => ({
  rows: items.map(({ id }) => id),
  route: route.length,
  mine: user?.roles.includes('admin')
})
export default shape
export const sign: UpstreamHeaders = ({ method, body = '' }) => ({ 'x-s': method + body })
`
  )
  const tsc = join(root, 'node_modules/typescript/bin/tsc')
  const compile = async () => {
    const { spawnSync } = await import('node:child_process')
    const options = ['--noEmit', '--strict', '--module', 'nodenext', 'own.ts']
    return spawnSync(process.execPath, [tsc, ...options], { cwd: folder, encoding: 'utf8' })
  }
  const sound = await compile()
  t.equal(sound.status, 0, sound.stdout)
  const config = await configFolder({
    routes: {
      upstreams: { b: { url: 'http://127.0.0.1:9' } },
      routes: { r: { path: '/api/r', upstream: 'b', shape: 's', access: 'public' } },
      shapes: { s: [{ module: './own.ts' }] },
      expect: {
        typed: {
          request: 'GET /api/r',
          answer: { items: [{ id: 'a' }] },
          response: { rows: ['a'] }
        }
      }
    },
    code: {
      'own.ts': `import type { Shape } from 'console-gateway'
export default (({ items }) => ({ rows: items.map(({ id }: { id: string }) => id) })) as Shape`
    }
  })
  t.match(await runProcess(['check', '-c', config]), { code: 0 }, 'Node runs TypeScript as it is')
  writeFileSync(
    join(folder, 'own.ts'),
    `import type { Shape } from 'console-gateway'
const shape: Shape = (value, { users }) => value
export default shape`
  )
  t.match((await compile()).stdout, /Property 'users' does not exist/)
})
