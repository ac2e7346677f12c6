import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { loadConfig } from '../../src/config/load.ts'
import { explain } from '../../src/explanation.ts'
import { run } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { freePort } from '../support/ports.ts'
import { testUpstream } from '../support/upstream.ts'

interface Told {
  readonly route?: string
  readonly passes: boolean
  readonly verdict: string
  readonly steps: ReadonlyArray<{ readonly about: string, readonly says: string, readonly at?: string, readonly refuses?: boolean, readonly now?: { readonly remaining: number, readonly exceeded: boolean } }>
}

const routesOf = (url: string) => ({
  upstreams: { b: { url: `${url}/base`, responseTimeout: '7s' } },
  aliases: { '/api/currentUser': '/api/account/profile', '/api/bestellungen': '/api/orders' },
  routes: {
    notices: { path: '/api/notices', upstream: 'b', rewrite: '/notices/list' },
    orders: { path: '/api/orders', methods: ['GET', 'POST'], access: { roles: ['admin'] }, upstream: 'b', timeout: '3s', shape: 'orders' },
    files: { path: '/api/files/*', upstream: 'b', rewrite: '/f/*' },
    open: { path: '/api/open', access: 'public', upstream: 'b' },
    closed: { path: '/api/closed', access: 'public', upstream: 'b' },
    made: { path: '/api/made', parts: { one: { upstream: 'b', rewrite: '/one' } } }
  },
  shapes: { orders: [{ pick: ['url'] }] },
  maintenance: { routes: ['closed'], allowRoles: ['admin'], until: '2099-01-01T00:00:00Z' }
})

t.test('what it says is what a running gateway does', async t => {
  const upstream = await testUpstream(t.after, ({ url }, response) => { response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ url })) })
  const folder = await configFolder({ gateway: { ops: { listen: `127.0.0.1:${await freePort()}` } }, routes: routesOf(upstream.url) })
  const gateway = await testGateway(t.after, folder)
  const cookies = { alice: await gateway.signIn('alice'), bob: await gateway.signIn('bob') }
  const config = loadConfig(folder, {})
  const people = { alice: { id: '1', username: 'alice', name: 'Alice Admin', roles: ['admin', 'user'], profile: {} }, bob: { id: '2', username: 'bob', name: 'Bob', roles: ['user'], profile: {} } }

  const cases: ReadonlyArray<readonly [method: string, path: string, as?: 'alice' | 'bob', header?: string]> = [
    ['GET', '/api/notices'],
    ['GET', '/api/notices?page=2', 'bob'],
    ['HEAD', '/api/notices', 'bob'],
    ['POST', '/api/notices', 'bob'],
    ['GET', '/api/orders', 'bob'],
    ['POST', '/api/orders', 'alice'],
    ['POST', '/api/orders', 'alice', 'origin: https://evil.example'],
    ['GET', '/api/bestellungen', 'alice'],
    ['GET', '/api/files/a/b.txt', 'bob'],
    ['GET', '/api/files', 'bob'],
    ['GET', '/api/files/%2e%2e/x', 'bob'],
    ['GET', '/api/open'],
    ['GET', '/api/closed', 'alice'],
    ['GET', '/api/made', 'bob'],
    ['GET', '/api/currentUser', 'alice'],
    ['GET', '/api/currentUser'],
    ['GET', '/api/nothing'],
    ['GET', '/api/session', 'alice'],
    ['GET', '/api/notices', 'bob', 'upgrade: websocket']
  ]
  for (const [method, path, as, header] of cases) {
    const title = [method, path, as ?? 'nobody', header ?? ''].join(' ')
    const [name = '', value = ''] = header?.split(': ') ?? []
    const told = await explain(config, { method, url: path, address: '127.0.0.1', ...as !== undefined && { identity: people[as] }, ...header !== undefined && { headers: { [name]: value } } })
    const before = upstream.seen.length
    // Not by fetch, which forbids some of these fields.
    const { status, json } = header?.startsWith('upgrade') === true ? { status: 400, json: undefined } : await gateway.call(path, { method, ...as !== undefined && { cookie: cookies[as] }, ...header !== undefined && { headers: { [name]: value } } })
    t.equal(told.passes, status < 400, title)
    if (told.passes) {
      const [seen] = upstream.seen.slice(before)
      t.equal(told.verdict, seen === undefined ? 'the gateway answers it itself' : seen.url === '/base/one' ? 'made of b /one' : `goes to b: ${seen.method} ${upstream.url}${seen.url}`, title)
    } else {
      t.equal(upstream.seen.length, before, title)
      t.ok(told.verdict.startsWith(`refused: ${status} ${(json as { errorCode?: string } | undefined)?.errorCode ?? ''}`), `${title}: ${told.verdict}`)
      t.equal(told.steps.at(-1)?.refuses, true, `${title}: the last decision is the one that refuses`)
    }
  }
})

t.test('each decision names the line of config that says it', async t => {
  const folder = await configFolder({ routes: routesOf('http://b.internal:81') })
  const told = JSON.parse((await run(['explain', 'GET', '/api/bestellungen', '--as', 'alice', '--json', '--config', folder])).out) as Told
  const lines = readFileSync(join(folder, 'routes.yaml'), 'utf8').split('\n')
  const lineOf = (about: string) => {
    const [file, line] = told.steps.find(step => step.about === about)?.at?.split(':') ?? []
    t.ok(file?.endsWith('routes.yaml'), about)
    return lines[Number(line) - 1]?.trim()
  }
  t.equal(lineOf('route'), 'orders:')
  t.equal(lineOf('alias'), '/api/bestellungen: /api/orders')
  t.equal(lineOf('access'), 'access:')
  t.equal(lineOf('upstream'), 'url: http://b.internal:81/base')
  t.equal(lineOf('time-out'), 'timeout: 3s')
  t.equal(lineOf('answer'), 'orders:')
  t.match(told.steps.find(({ about }) => about === 'fields')?.says, /x-user-id: 1; .*x-user-roles: admin,user/)
  t.match(told.steps.find(({ about }) => about === 'time-out')?.says, 'first byte within 3s')
})

t.test('limits are told with how they stand at the running gateway, and a limit that is over refuses', async t => {
  const folder = await configFolder({ gateway: { ops: { listen: `127.0.0.1:${await freePort()}` } }, limits: { limits: { few: { by: 'user', max: 3, window: '1h', routes: ['session'] }, seen: { by: 'user', max: 1, window: '1h', mode: 'shadow', routes: ['session'] }, other: { by: 'address', max: 5, window: '1h' } } } })
  const gateway = await testGateway(t.after, folder)
  const cookie = await gateway.signIn('bob')
  const ask = async (...more: string[]) => await run(['explain', 'GET', '/api/session', '--as', 'bob', '--config', folder, ...more])
  t.match((await ask()).out, /few: 3 in 1h by user; 3 left now/)
  for (let n = 0; n < 2; n++) await gateway.call('/api/session', { cookie })
  const { out, code } = await ask()
  t.match(out, /few: 3 in 1h by user; 1 left now/)
  t.match(out, /seen: 1 in 1h by user; in shadow: refuses nobody; over, free again in \d+ s/)
  t.notMatch(out, 'other:', 'who is signed in is not counted by address')
  t.equal(code, 0)
  await gateway.call('/api/session', { cookie })
  const over = await ask()
  t.match(over.out, /refused now: 429 limit\.exceeded, by few; free again in \d+ s/)
  t.equal(over.code, 3)
  t.equal((await gateway.call('/api/session', { cookie })).status, 429)
})

t.test('without a running gateway it says so, and the rest all the same', async t => {
  const folder = await configFolder({ gateway: { ops: { listen: `127.0.0.1:${await freePort()}` } }, routes: routesOf('http://127.0.0.1:9') })
  const { code, out } = await run(['explain', 'get', '/api/notices', '--as', 'carol', '--role', 'x', '--config', folder])
  t.equal(code, 0)
  t.match(out, /^GET \/api\/notices, carol \(x\), from 127\.0\.0\.1\n/)
  t.match(out, 'How the limits stand is not known. No gateway answers on')
  t.match(out, 'No users file knows carol')
  t.match((await run(['explain', 'GET', '/api/notice', '--config', folder])).out, 'Did you mean "/api/notices"?')
})

t.test('words that make no sense are told the right ones', async t => {
  const folder = await configFolder()
  for (const words of [['FETCH', '/x'], ['GET', '/x', '--from', 'here']]) t.match(await run(['explain', ...words, '--config', folder]), { code: 2, err: /Usage: console-gateway explain/ }, words.join(' '))
  writeFileSync(join(folder, 'routes.yaml'), stringify({ ...parse('{}') as object, routes: 5 }))
  t.match(await run(['explain', 'GET', '/x', '--config', folder]), { code: 1, err: 'routes.yaml:1 routes: expected a mapping' })
})
