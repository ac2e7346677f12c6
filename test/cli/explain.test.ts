import { rmSync, writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import t from 'tap'
import { loadConfig } from '../../src/config/load/load.ts'
import type { Decision, Explained } from '../../src/dry-run/explain/decision.ts'
import { explain, type RunningGateway } from '../../src/dry-run/explain/explanation.ts'
import { run } from '../support/command.ts'
import { freePort } from '../support/ports.ts'
import { until } from '../support/until.ts'
import { configFolder, password, testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

const identities = {
  alice: { id: '1', username: 'alice', name: 'Alice Admin', roles: ['admin', 'user'], profile: {} },
  bob: { id: '2', username: 'bob', name: 'Bob', roles: ['user'], profile: {} }
}

const running: RunningGateway = { maintenance: async () => [] }
const noGateway: RunningGateway = {
  maintenance: async () => await Promise.reject(new Error('none'))
}

interface Case {
  readonly asks: string
  readonly as?: keyof typeof identities
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const page = { 'sec-fetch-site': 'same-origin' }
const signIn = (word: string) => JSON.stringify({ username: 'alice', password: word })

/** What a running gateway decides, and whom each of these asks. */
const cases: readonly Case[] = [
  { asks: 'GET /x/api/orders' },
  { asks: 'GET /x/api/orders', as: 'bob' },
  { asks: 'GET /x/api/orders?page=2&q=%20a', as: 'alice' },
  { asks: 'HEAD /x/api/orders', as: 'alice' },
  { asks: 'POST /x/api/orders', as: 'alice', body: '{"a":1}' },
  {
    asks: 'POST /x/api/orders',
    as: 'alice',
    headers: { 'sec-fetch-site': 'cross-site', 'origin': 'https://evil.example' },
    body: '{}'
  },
  {
    asks: 'POST /x/api/orders',
    as: 'alice',
    headers: { origin: 'https://friend.example' },
    body: '{}'
  },
  { asks: 'POST /x/api/orders', as: 'alice', body: 'x'.repeat(2048) },
  { asks: 'DELETE /x/api/orders', as: 'alice' },
  { asks: 'GET /x/api/order', as: 'alice' },
  { asks: 'GET /api/orders', as: 'alice' },
  { asks: 'GET /x/api/api/orders', as: 'alice' },
  { asks: 'GET /x/api/files/a/b%20c?d=e' },
  { asks: 'GET /x/api/files/deep/er', as: 'bob' },
  { asks: 'GET /x/api/dateien/a' },
  { asks: 'GET /x/api/files/../orders', as: 'alice' },
  { asks: 'GET /x/api//orders', as: 'alice' },
  { asks: 'GET /x/api/files/%2e%2e/a' },
  { asks: 'GET /x/api/files/%ff' },
  { asks: 'GET /x/api/files/a;b' },
  { asks: 'GET /x/API/orders', as: 'alice' },
  { asks: `GET /x/api/files/${'a'.repeat(9000)}` },
  { asks: 'GET /x/api/files/a', headers: { host: 'evil.example' } },
  { asks: 'GET /x/api/files/a', headers: { upgrade: 'websocket', connection: 'upgrade' } },
  { asks: 'GET /x/api/account/profile' },
  { asks: 'GET /x/api/currentUser', as: 'bob' },
  { asks: 'GET /x/api/session', as: 'bob' },
  { asks: 'GET /x/api/session' },
  { asks: 'POST /x/api/session/extend', as: 'bob' },
  { asks: 'POST /x/api/auth/admin/login', body: signIn(password) },
  { asks: 'POST /x/api/auth/admin/login', body: '{"username":1}' },
  { asks: 'POST /x/api/auth/admin/login', body: signIn('x'.repeat(5000)) },
  { asks: 'GET /x/api/auth/admin/login' },
  { asks: 'GET /x/api/closed', as: 'bob' },
  { asks: 'GET /x/api/closed', as: 'alice' },
  { asks: 'GET /x/api/together', as: 'bob' },
  { asks: 'GET /x/api/rare', as: 'alice' },
  { asks: 'GET /x/api/rare', as: 'bob' },
  { asks: 'OPTIONS /x/api/orders', as: 'alice' },
  {
    asks: 'OPTIONS /x/api/orders',
    headers: { 'origin': 'https://friend.example', 'access-control-request-method': 'POST' }
  },
  { asks: 'POST /x/api/account/logout', as: 'bob' }
]

const files = (upstream: string) => ({
  gateway: {
    server: { hosts: ['console.example'], mount: '/x', origins: ['https://friend.example'] }
  },
  routes: {
    upstreams: { backend: { url: `${upstream}/base` } },
    aliases: { '/api/currentUser': '/api/account/profile', '/api/dateien/*': '/api/files/*' },
    routes: {
      orders: {
        path: '/api/orders',
        methods: ['GET', 'POST'],
        access: { roles: ['admin'] },
        upstream: 'backend',
        rewrite: '/v2/orders',
        maxBody: '1KiB',
        timeout: '7s'
      },
      files: { path: '/api/files/*', access: 'public', upstream: 'backend', rewrite: '/store/*' },
      deep: { path: '/api/files/deep/*', upstream: 'backend' },
      closed: { path: '/api/closed', upstream: 'backend' },
      rare: { path: '/api/rare', upstream: 'backend' },
      together: {
        path: '/api/together',
        parts: { a: { upstream: 'backend', rewrite: '/a', into: 'a' } }
      }
    },
    maintenance: { routes: ['closed'], allowRoles: ['admin'] }
  },
  limits: {
    limits: {
      rare: { by: 'user', max: 2, window: '1h', routes: ['rare'] },
      guess: { by: 'address', max: 100, window: '1m', routes: ['login'] }
    }
  }
})

interface Answer {
  readonly status: number
  readonly code: string | undefined
  readonly cookie: string
}

/** As it stands, where fetch would repair the path and choose the host. */
function call(
  url: string,
  method: string,
  target: string,
  headers: Readonly<Record<string, string>>,
  body?: string
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const bodyFields =
      body === undefined
        ? {}
        : { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(body)) }
    httpRequest(
      {
        hostname,
        port,
        method,
        path: target,
        agent: false,
        headers: { host: 'console.example', ...bodyFields, ...headers }
      },
      answer => {
        text(answer).then(all => {
          const { errorCode } = (all.startsWith('{') ? JSON.parse(all) : {}) as {
            errorCode?: string
          }
          resolve({
            status: answer.statusCode ?? 0,
            code: errorCode,
            cookie:
              answer.headers['set-cookie']
                ?.map(cookie => cookie.split(';', 1)[0] ?? '')
                .find(cookie => cookie.startsWith('console_sid=')) ?? ''
          })
        }, reject)
      }
    )
      .once('error', reject)
      .end(body)
  })
}

t.test('explain says of each request what a running gateway then does', async t => {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, files(backend.url))
  const config = loadConfig(gateway.folder, {})
  const signedIn = async (username: string) =>
    (
      await call(
        gateway.url,
        'POST',
        '/x/api/auth/admin/login',
        {},
        JSON.stringify({ username, password })
      )
    ).cookie
  const cookies = { alice: await signedIn('alice'), bob: await signedIn('bob') }
  for (const { asks, as, headers = page, body } of cases) {
    const title = `${asks.slice(0, 60)}${as === undefined ? '' : `, as ${as}`}`
    const [method = '', target = ''] = asks.split(' ')
    const given: Explained = {
      method,
      target,
      from: '127.0.0.1',
      headers,
      ...(body !== undefined && { body }),
      ...(as !== undefined && {
        who: { source: 'users-file', identity: identities[as], description: as }
      })
    }
    const { verdict } = await explain(config, given, running)
    const cookie = as === undefined ? undefined : cookies[as]
    const before = backend.seen.length
    const answer = await call(
      gateway.url,
      method,
      target,
      { ...headers, ...(cookie !== undefined && { cookie }) },
      body
    )
    const asked = backend.seen.slice(before).map(({ url }) => backend.url + url)
    if (verdict.passes) t.ok(answer.status < 400, `${title}: passes (${answer.status})`)
    else {
      t.same(
        [verdict.status, verdict.code],
        [answer.status, method === 'HEAD' ? verdict.code : answer.code],
        title
      )
    }
    if (verdict.url !== undefined) t.same(asked, [verdict.url], `${title}: goes to`)
    else if (!verdict.passes) t.same(asked, [], `${title}: goes nowhere`)
  }
})

t.test(
  'each decision is told in order, with file and line, and what would follow for one who may pass',
  async t => {
    const folder = await configFolder({ gateway: files('').gateway })
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(
      join(folder, 'routes.yaml'),
      [
        'upstreams:',
        '  backend:',
        '    url: http://127.0.0.1:1/base',
        '    connectTimeout: 1s',
        'aliases:',
        '  /api/bestellungen: /api/orders',
        'routes:',
        '  orders:',
        '    path: /api/orders',
        '    access: { roles: [admin] }',
        '    upstream: backend',
        '    rewrite: /v2/orders',
        '    timeout: 7s',
        '    maxBody: 1KiB',
        '    touch: never',
        '    shape: rows',
        'shapes:',
        '  rows:',
        '    - status: { path: code, ok: [0] }',
        '    - unwrap: data'
      ].join('\n')
    )
    const { out, code } = await run([
      'explain',
      'get',
      '/x/api/bestellungen',
      '--as',
      'bob',
      '--from',
      '203.0.113.7',
      '-c',
      folder
    ])
    t.equal(code, 3)
    const lines = out
      .replaceAll(`${folder}/`, '')
      .split('\n')
      .map(line => line.trim())
    const has = (line: string) => t.ok(lines.includes(line), `${line}\n${out}`)
    t.same(
      lines.filter(line => /^[✓✗·-] [a-z]+ {2}/.test(line)).map(line => line.split(/\s+/)[1]),
      [
        'request',
        'route',
        'alias',
        'session',
        'origin',
        'limits',
        'access',
        'upstream',
        'timeouts',
        'fields',
        'sizes',
        'touch',
        'shape',
        'errors'
      ]
    )
    has('✓ route       orders  routes.yaml:8')
    has('· alias       /api/bestellungen stands for /api/orders  routes.yaml:6')
    has('· session     bob of users.yaml (role user)')
    has('✗ access      roles admin: Your role does not allow this.  routes.yaml:10')
    has('- upstream    backend: GET http://127.0.0.1:1/base/v2/orders  routes.yaml:12')
    has('- timeouts    7s to the first byte of the response  routes.yaml:13')
    has('1s to connect, 30s for a body that stalls  routes.yaml:2')
    has('5m for a silent event stream  routes.yaml:2')
    has('10m to the last byte  routes.yaml:2')
    has('- sizes       a body of 1KiB at most  routes.yaml:14')
    has('- touch       does not keep the session from going idle  routes.yaml:15')
    has('+ x-user-id: 2')
    has('+ x-forwarded-for: 203.0.113.7')
    has('- cookie')
    has('unwrap: data  routes.yaml:20')
    has('→ refused by access: 403 route.forbidden (Your role does not allow this.)')
    t.match(out, /Unknown: operators’ maintenance\. No gateway answers on 127\.0/)
    t.notMatch(out, /\u001b\[/, 'no colours where nobody looks')
  }
)

t.test(
  'a path that nothing has is told with the nearest, one that another method has with its methods, and why a path is refused',
  async t => {
    const folder = await configFolder(files('http://127.0.0.1:1'))
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const route = async (...words: string[]) => {
      const { out } = await run(['explain', ...words, '-c', folder, '--json'])
      const { decisions } = JSON.parse(out) as {
        decisions: Array<{ step: string; result: string; text: string }>
      }
      return decisions.find(({ result }) => result === 'refuses')?.text
    }
    t.equal(
      await route('GET', '/x/api/order'),
      'no route has this path. Did you mean "/x/api/orders"?'
    )
    t.equal(
      await route('DELETE', '/x/api/orders'),
      '/x/api/orders exists, but not with DELETE: it takes GET, HEAD, POST'
    )
    t.equal(
      await route('GET', '/x/api/files/../orders'),
      'The address of the request is not allowed: it has an empty or a dot segment'
    )
    t.equal(
      await route('GET', '/x/api/files/%2e'),
      'The address of the request is not allowed: it holds an escape that two readers may take for two paths'
    )
    t.match(await route('GET', '/api/orders'), /Every public path begins with \/x\./)
  }
)

t.test('the limits that apply are told, with their numbers', async t => {
  const folder = await configFolder(files('http://127.0.0.1:1'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const config = loadConfig(folder, {})
  const limitsOf = async (target: string, who?: Explained['who'], method = 'GET') => {
    const asked = { method, target, from: '127.0.0.1', headers: page, ...(who && { who }) }
    const { decisions } = await explain(config, asked, noGateway)
    return decisions.find(({ step }) => step === 'limits')?.lines?.map(({ text }) => text)
  }
  const alice = { source: 'users-file', identity: identities.alice, description: 'alice' }
  t.match(await limitsOf('/x/api/rare', alice), [
    'rare: 2 in 1h, by user',
    'inFlightPerUser: 48 at the same time'
  ])
  t.match(await limitsOf('/x/api/auth/admin/login', undefined, 'POST'), [
    'guess: 100 in 1m, by address',
    'inFlightSignIns: 200 at the same time'
  ])
})

t.test(
  'the statuses that errors of the config have are told, also where an entry says',
  async t => {
    const errorsOf = async (envelope: object) => {
      const folder = await configFolder({
        gateway: { envelope },
        routes: {
          upstreams: { b: { url: 'http://127.0.0.1:1' } },
          routes: {
            open: { path: '/api/open', access: 'public', upstream: 'b' },
            dual: { path: '/api/dual', access: 'public', upstream: 'b', dialect: 'dual' }
          }
        }
      })
      t.after(() => rmSync(folder, { recursive: true, force: true }))
      const config = loadConfig(folder, {})
      const texts = ['/api/open', '/api/dual'].map(async target => {
        const asked = { method: 'GET', target, from: '127.0.0.1', headers: {} }
        const { decisions } = await explain(config, asked, noGateway)
        return decisions.find(({ step }) => step === 'errors')?.text
      })
      return await Promise.all(texts)
    }
    const custom = { dialect: 'custom', errorStatus: 'ok', custom: { members: {} } }
    t.same(await errorsOf(custom), [
      'in the dialect custom, with always the status 200',
      'in the dialect dual, with always the status 200'
    ])
    const errors = { 'session.*': { status: 401 }, '*': { code: 500 } }
    t.same(await errorsOf({ ...custom, custom: { members: {}, errors } }), [
      'in the dialect custom, with the status of its entry in envelope.custom.errors, else 200',
      'in the dialect dual, with always the status 200'
    ])
    t.match(await errorsOf({ dialect: 'custom', custom: { members: {}, errors } }), [
      /with the status of its entry in envelope\.custom\.errors, else the error’s own$/,
      'in the dialect dual, with the status of the error'
    ])
  }
)

t.test('what operators closed is explained as the running gateway refuses it', async t => {
  const backend = await testUpstream(t.after)
  const folder = await configFolder({
    gateway: { ops: { listen: `127.0.0.1:${await freePort()}` } },
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        news: { path: '/api/news', upstream: 'b' },
        orders: { path: '/api/orders', upstream: 'b' }
      }
    }
  })
  await testGateway(t.after, folder)
  const command = async (...words: string[]) => await run([...words, '--config', folder])
  const explained = async (path: string, role: string) =>
    await command('explain', 'GET', path, '--role', role)
  const open = await explained('/api/news', 'clerk')
  t.equal(open.code, 0)
  t.notMatch(open.out, 'maintenance')
  const begun = await command(
    ...['maintenance', 'begin', '--until', '30m', '--route', 'news'],
    ...['--allow-role', 'admin', '--message', 'Stock-taking.']
  )
  t.equal(begun.code, 0)
  const closed = await explained('/api/news', 'clerk')
  t.equal(closed.code, 3)
  t.match(closed.out, '✗ maintenance closed: Stock-taking.')
  t.match(closed.out, /^ +operator operator closes news but for the roles admin until 20/m)
  t.match(closed.out, '→ refused by maintenance: 503 maintenance (Stock-taking.)')
  t.match(closed.out, '- upstream', 'what follows for one who may pass')
  t.match(await explained('/api/news', 'admin'), {
    code: 0,
    out: '✓ maintenance not closed for this request'
  })
  t.match(await explained('/api/orders', 'clerk'), { code: 0 }, 'another route')
  await command(
    'maintenance',
    'begin',
    '--until',
    '30m',
    '--message',
    '\u009b2J\u001b]0;owned\u0007'
  )
  for (const words of [['explain', 'GET', '/api/news', '--role', 'clerk'], ['maintenance']]) {
    const { out } = await command(...words)
    t.notMatch(out, /[\u0000-\u0009\u000b-\u001f\u0080-\u009f]/, words.join(' '))
  }
})

t.test('words that make no sense are told apart from requests that are refused', async t => {
  const folder = await configFolder()
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  for (const words of [
    [],
    ['GET'],
    ['GIT', '/api'],
    ['GET', '/a b'],
    ['GET', '/a', '--from', 'home'],
    ['GET', '/a', '--header', 'no field'],
    ['GET', '/a', '-H', 'Origin: https://a.example', '-H', 'origin: https://b.example'],
    ['GET', '/a', '/b']
  ]) {
    t.match(await run(['explain', ...words, '-c', folder]), { code: 2 }, words.join(' '))
  }
  const secret = ['-H', 'authorization: Bearer the-secret\u2026']
  const refused = await run(['explain', 'GET', '/a', ...secret, '-c', folder])
  t.equal(refused.code, 2)
  t.notMatch(refused.err, 'the-secret')
  t.match(await run(['explain', 'GET', '/api/session', '--as', 'carol', '-c', folder]), {
    code: 0,
    out: /carol \(no roles\); in no users file: name the back-end’s roles with --role/
  })
  t.match(await run(['explain', 'GET', '/api/session', '--as', 'alice', '-c', folder]), {
    code: 0,
    out: /→ answered by the gateway: 200/
  })
})

t.test(
  'a route that takes upgrades says what holds for them, and decides its origin once',
  async t => {
    const folder = await configFolder({
      routes: {
        upstreams: { b: { url: 'http://127.0.0.1:9' } },
        routes: {
          chat: { path: '/api/chat', upstream: 'b', websocket: { maxMessage: '2MiB' } },
          plain: { path: '/api/plain', upstream: 'b' }
        }
      }
    })
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    const explainOf = async (path: string) =>
      await run(['explain', 'GET', path, '--as', 'alice', '-c', folder, '--json'])
    const stepsOf = (out: string) =>
      (JSON.parse(out) as { decisions: ReadonlyArray<{ step: string }> }).decisions.map(
        ({ step }) => step
      )
    const chat = await explainOf('/api/chat')
    t.match(chat.out, /messages of 2MiB at most/)
    t.match(chat.out, /10 connections of a user, 1000 in all/)
    const plain = stepsOf((await explainOf('/api/plain')).out)
    t.same(
      stepsOf(chat.out).filter(step => step !== 'websocket'),
      plain
    )
    t.notOk(plain.includes('websocket'))
  }
)

t.test('beside the upstream stand the states of its addresses at the running gateway', async t => {
  const backend = await testUpstream(t.after)
  const gone = `http://127.0.0.1:${await freePort()}`
  const folder = await configFolder({
    gateway: { ops: { listen: `127.0.0.1:${await freePort()}` } },
    routes: {
      upstreams: { b: { urls: [backend.url, gone], breaker: { openFor: '1m' } } },
      routes: { list: { path: '/api/list', upstream: 'b', access: 'public' } }
    }
  })
  const gateway = await testGateway(t.after, folder)
  const statesOf = async () => {
    const { out } = await run(['explain', 'GET', '/api/list', '-c', folder, '--json'])
    const { decisions } = JSON.parse(out) as {
      decisions: ReadonlyArray<{ step: string; lines?: ReadonlyArray<{ facts: object }> }>
    }
    return decisions.find(({ step }) => step === 'addresses')?.lines?.map(({ facts }) => facts)
  }
  t.match(await statesOf(), [
    { address: backend.url, state: 'up', inFlight: 0 },
    { address: gone, state: 'up' }
  ])
  await until('the address that refuses connections is left out', async () => {
    t.equal((await gateway.call('/api/list')).status, 200)
    return (await statesOf())?.some(facts => 'state' in facts && facts.state === 'open') === true
  })
  t.match(await statesOf(), [{ state: 'up' }, { address: gone, state: 'open' }])
})

t.test('an answer of config is explained as such, also one with an error’s status', async t => {
  const gateway = await testGateway(t.after, {
    routes: {
      routes: {
        menus: { path: '/api/menus', answer: { json: '{roles}' } },
        constructor: { path: '/api/named', answer: { json: '{roles}' } },
        gone: {
          path: '/api/gone',
          access: 'public',
          answer: { json: {}, status: 410, inEnvelope: 'none' }
        }
      }
    }
  })
  const config = loadConfig(gateway.folder, {})
  const ask = async (target: string) =>
    await explain(
      config,
      {
        method: 'GET',
        target,
        from: '127.0.0.1',
        headers: {},
        who: { source: 'users-file', identity: identities.alice, description: 'alice' }
      },
      noGateway
    )
  const named = await ask('/api/named')
  t.notMatch(JSON.stringify(named.decisions), 'inFlightPerRoute')
  const menus = await ask('/api/menus')
  t.match(menus.verdict, { passes: true, status: 200, route: 'menus' })
  const answer = menus.decisions.find(({ step }) => step === 'answer')
  t.match(answer, { text: 'the answer stands in config', at: { path: 'routes.menus.answer' } })
  t.match((await ask('/api/gone')).verdict, { passes: true, status: 410, route: 'gone' })
})

t.test(
  'each operation of a shape has the line where it stands, or the `use` that inserts it',
  async t => {
    const folder = await configFolder()
    t.after(() => rmSync(folder, { recursive: true, force: true }))
    writeFileSync(
      join(folder, 'routes.yaml'),
      [
        'upstreams: { backend: { url: "http://127.0.0.1:1" } }',
        'routes: { r: { path: /api/r, access: public, upstream: backend, shape: notices } }',
        'shapes:',
        '  notices:',
        '    - unwrap: a',
        '    - use: base',
        '    - wrap: envelope',
        '  base:',
        '    - unwrap: b',
        '    - unwrap: c',
        '    - unwrap: d'
      ].join('\n')
    )
    const { out } = await run(['explain', 'get', '/api/r', '--json', '-c', folder])
    const { decisions } = JSON.parse(out) as { decisions: Decision[] }
    const { lines = [] } = decisions.find(({ step }) => step === 'shape') ?? {}
    t.same(
      lines.map(({ text, at }) => `${text} ${at?.line}`),
      ['unwrap: a 5', 'unwrap: b 6', 'unwrap: c 6', 'unwrap: d 6', 'wrap: envelope 7']
    )
  }
)
