/** The audit ledger of a running gateway: its lines, commands and API, and what becomes of it in a crash. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t, { type Test } from 'tap'
import { run, type Running, start } from '../support/command.ts'
import { configFolder, password, testGateway } from '../support/gateway.ts'
import { ledgerFiles, type LedgerLine as Line, linesIn } from '../support/ledger.ts'
import { askOps } from '../support/ops.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const env = {
  AUDIT_KEY: 'an audit key of at least thirty-two bytes',
  SESSION_SECRET: 'a session secret of at least thirty-two'
}

async function files(t: Test, gateway: object = {}) {
  const upstream = await testUpstream(t.after, json(200, { ok: true }))
  return {
    gateway: {
      audit: {
        key: '${AUDIT_KEY}',
        fields: { orders: { 'amount': 'plain', 'customer.iban': 'last4', 'note': 'hash' } }
      },
      ...gateway
    },
    routes: {
      upstreams: { api: { url: upstream.url } },
      routes: {
        orders: { path: '/api/orders/*', methods: ['GET', 'POST'], upstream: 'api' },
        secret: {
          path: '/api/secret',
          methods: ['POST'],
          upstream: 'api',
          access: { roles: ['nobody'] }
        }
      }
    }
  }
}

async function urlOf(gateway: Running): Promise<string> {
  const written = await gateway.says('listening on')
  return /"url":"([^"]+)"/.exec(written)?.[1] ?? ''
}

const lineWhere = async (folder: string, fits: (line: Line) => boolean): Promise<Line> => {
  await until('the line is written', () => linesIn(folder).some(fits))
  return linesIn(folder).find(fits) ?? {}
}

t.test('sign-ins, unsafe requests, refusals, acts and sign-outs have a line each', async t => {
  const gateway = await testGateway(t.after, await files(t), env)
  const { folder } = gateway
  const cookie = await gateway.signIn('alice')
  await gateway.call('/api/auth/admin/login', {
    method: 'POST',
    json: { username: 'bob', password: 'wrong' }
  })
  await gateway.call('/api/orders/7?token=hidden-value', {
    method: 'POST',
    cookie,
    json: { amount: 12.5, customer: { iban: 'DE02120300000000202051' }, note: 'hello' }
  })
  await gateway.call('/api/orders/7', { cookie })
  await gateway.call('/api/secret', { method: 'POST', cookie, json: { password: 'hidden-value' } })
  await gateway.ops('/ops/api/sessions/close', { json: { user: 'bob' } })
  await gateway.call('/api/account/logout', { method: 'POST', cookie })

  t.match(await lineWhere(folder, ({ kind }) => kind === 'sign-in'), {
    user: 'alice',
    userId: '1',
    source: 'users-file',
    status: 200
  })
  t.match(await lineWhere(folder, ({ kind }) => kind === 'sign-in.refused'), {
    user: 'bob',
    code: 'login.refused'
  })
  const request = await lineWhere(folder, ({ route }) => route === 'orders')
  t.match(request, {
    kind: 'request',
    user: 'alice',
    method: 'POST',
    path: '/api/orders/7',
    status: 200,
    fields: { 'amount': '12.5', 'customer.iban': '…2051', 'note': /^[\w-]{16}$/ }
  })
  t.match(await lineWhere(folder, ({ route }) => route === 'secret'), {
    code: 'route.forbidden',
    status: 403
  })
  t.match(await lineWhere(folder, ({ kind }) => kind === 'act'), {
    act: 'sessions.close',
    outcome: 'done',
    operator: 'operator',
    detail: { user: 'bob' }
  })
  t.match(await lineWhere(folder, ({ kind }) => kind === 'sign-out'), {
    user: 'alice',
    userId: '1'
  })
  const all = linesIn(folder)
  t.equal(all.filter(({ method }) => method === 'GET').length, 0)
  const written = JSON.stringify(all)
  for (const secret of [password, 'hidden-value', 'wrong', cookie.split('=')[1] ?? 'none']) {
    t.notOk(written.includes(secret), `${secret} is in no line`)
  }
})

t.test(
  'after kill -9 under load the ledger verifies, and the next start goes on in a new file',
  async t => {
    const tree = await files(t, { server: { listen: '127.0.0.1:0' } })
    const folder = await configFolder(tree)
    const first = start(t.after, folder, env)
    const url = await urlOf(first)
    const load = new AbortController()
    const attempts = Array.from({ length: 8 }, async () => {
      while (!load.signal.aborted) {
        await fetch(`${url}/api/auth/admin/login`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify({ username: 'eve', password: 'x' })
        }).then(
          response => response.text(),
          () => {}
        )
      }
    })
    await until('some lines are written', () => linesIn(folder).length > 20)
    first.signal('SIGKILL')
    await first.ended
    load.abort()
    await Promise.all(attempts)
    const verified = await run(['audit', 'verify', '-c', folder], { env })
    t.equal(verified.code, 0, verified.out)
    t.match(verified.out, /note: .* has no end: it is still written, or its process crashed/)
    const second = start(t.after, folder, env)
    await urlOf(second)
    await until('it writes a file of its own', () => ledgerFiles(folder).length === 2)
    await lineWhere(
      folder,
      ({ kind, others }) => kind === 'opened' && JSON.stringify(others) !== '{}'
    )
    second.signal('SIGTERM')
    await second.ended
    const again = await run(['audit', 'verify', '-c', folder], { env })
    t.equal(again.code, 0, again.out)
  }
)

t.test('the head stands in Redis', async t => {
  const redis = await testRedis(t.after)
  const tree = await files(t, {
    server: { listen: '127.0.0.1:0' },
    redis: { url: redis.url },
    session: { secrets: ['${SESSION_SECRET}'], cookie: { secure: false } }
  })
  const folder = await configFolder(tree)
  const gateway = start(t.after, folder, env)
  const url = await urlOf(gateway)
  for (let count = 0; count < 30; count++) {
    await fetch(`${url}/api/auth/admin/login`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ username: `user-${count}`, password: 'x' })
    })
  }
  const refused = () => linesIn(folder).filter(({ kind }) => kind === 'sign-in.refused')
  await until('all are written', () => refused().length === 30)
  t.equal(new Set(refused().map(({ user }) => user)).size, 30)
  t.equal(ledgerFiles(folder).length, 1)
  const opsUrl = /"ops":"([^"]+)"/.exec(await gateway.says('listening on'))?.[1] ?? ''
  const closed = await askOps(opsUrl, '/ops/api/sessions/close', { json: { everyone: true } })
  t.equal(closed.status, 200)
  await lineWhere(folder, ({ act, outcome }) => act === 'sessions.close' && outcome === 'done')
  gateway.signal('SIGTERM')
  await gateway.ended
  const verified = await run(['audit', 'verify', '-c', folder], { env })
  t.equal(verified.code, 0, verified.out + verified.err)
  t.match(verified.out, 'held against the heads in Redis')
  const [path = ''] = ledgerFiles(folder)
  writeFileSync(path, `${readFileSync(path, 'utf8').split('\n').slice(0, 20).join('\n')}\n`)
  const cut = await run(['audit', 'verify', '-c', folder], { env })
  t.equal(cut.code, 1)
  t.match(cut.out, 'its end was cut, as the head in Redis says')
  rmSync(path)
  const deleted = await run(['audit', 'verify', '-c', folder], { env })
  t.equal(deleted.code, 1)
  t.match(deleted.out, 'it was deleted, as the head in Redis says')
  const client = new Redis(redis.url)
  t.after(() => client.disconnect())
  const heads = Object.entries(await client.hgetall('{cg}:audit-heads'))
  t.match(heads, [[/^[\w-]+$/, / .+/]])
  t.equal(heads.length, 1)
  const [chain = '', head = ''] = heads[0] ?? []
  const moved = head.replace(/ .*/, ' another-machine /var/audit')
  t.equal(await client.hset('{cg}:audit-heads', chain, moved), 0, 'it was there')
  t.equal(await client.hget('{cg}:audit-heads', chain), moved)
  const elsewhere = await run(['audit', 'verify', '-c', folder], { env })
  t.equal(elsewhere.code, 3)
  t.match(elsewhere.out, /warning: .* is not here: a replica with another folder wrote it/)
})

t.test('to standard output: the same lines among those of the log', async t => {
  const tree = await files(t, { audit: { to: 'stdout', key: '${AUDIT_KEY}' } })
  const folder = await configFolder({
    ...tree,
    gateway: { ...tree.gateway, server: { listen: '127.0.0.1:0' } }
  })
  const gateway = start(t.after, folder, env)
  const url = await urlOf(gateway)
  await fetch(`${url}/api/auth/admin/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ username: 'eve', password: 'x' })
  })
  await gateway.says('sign-in.refused')
  gateway.signal('SIGTERM')
  await gateway.ended
  const log = join(folder, 'collected.log')
  writeFileSync(log, await gateway.says('stopped'))
  const verified = await run(['audit', 'verify', '-c', folder, '--collected', log], { env })
  t.equal(verified.code, 0, verified.out + verified.err)
  t.match(verified.out, /^as it was written \(3 lines in 1 chain/)
  t.match(await run(['audit', 'verify', '-c', folder], { env }), { code: 1, err: /--collected/ })
})

t.test(
  'a process that ends after an internal error writes the lines of its last requests',
  async t => {
    const held: Array<() => void> = []
    const upstream = await testUpstream(t.after, (_request, response) => {
      held.push(() => response.end('ok'))
    })
    const redis = await testRedis(t.after)
    const folder = await configFolder({
      gateway: {
        audit: { key: '${AUDIT_KEY}' },
        server: { listen: '127.0.0.1:0' },
        redis: { url: redis.url },
        session: { secrets: ['${SESSION_SECRET}'] }
      },
      routes: {
        upstreams: { api: { url: upstream.url } },
        routes: {
          orders: { path: '/api/orders', methods: ['POST'], access: 'public', upstream: 'api' }
        }
      }
    })
    const faults = new URL('../support/fault-on-signal.ts', import.meta.url).href
    const gateway = start(t.after, folder, { ...env, NODE_OPTIONS: `--import=${faults}` })
    const url = await urlOf(gateway)
    const posts = [1, 2].map(
      async () => (await fetch(`${url}/api/orders`, { method: 'POST' })).status
    )
    await until('both are in flight', () => held.length === 2)
    gateway.signal('SIGURG')
    await gateway.says('a fault made by a test')
    for (const finish of held) finish()
    t.same(await Promise.all(posts), [200, 200])
    t.same(await gateway.ended, { code: 1, signal: null })
    const lines = linesIn(folder).filter(({ kind }) => kind === 'request' || kind === 'lost')
    t.match(lines, [
      { kind: 'request', route: 'orders' },
      { kind: 'request', route: 'orders' }
    ])
  }
)
