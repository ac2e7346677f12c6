/** The audit ledger of a running gateway: its lines, in a crash too, and what operators learn of it. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { run } from '../support/command.ts'
import { configFolder, password, type TestGateway, testGateway } from '../support/gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { ledgerFiles, type LedgerLine as Line, linesIn } from '../support/ledger.ts'
import { testRedis } from '../support/redis.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const audit = {
  key: 'file:session-secret',
  fields: { orders: { 'amount': 'plain', 'customer.iban': 'last4', 'note': 'hash' } }
}
const held: Array<() => void> = []
const backend = await testUpstream(t.teardown, (_request, response, { url }) => {
  if (url === '/api/held') held.push(() => response.end('ok'))
  else response.end('{"ok":true}')
})
const post = { methods: ['GET', 'POST'] }
const routes = {
  routes: {
    orders: { ...post, path: '/api/orders/*' },
    secret: { ...post, access: { roles: ['nobody'] } },
    held: { ...post, access: 'public' }
  }
}
/** The back-end may take longer than a busy machine needs for what happens while requests are held. */
const files = { gateway: { audit }, backend: { url: backend.url, responseTimeout: '5m' }, routes }

const lineWhere = async (folder: string, fits: (line: Line) => boolean): Promise<Line> => {
  await until('the line is written', () => linesIn(folder).some(fits))
  return linesIn(folder).find(fits) ?? {}
}

const wrong = { password: 'wrong' }

const verify = async (folder: string, ...words: string[]) =>
  await run(['audit', 'verify', '-c', folder, ...words])

/** With a Redis of its own. */
async function sharedFolder(t: Test, more: object = {}) {
  const redis = await testRedis(t.after)
  const gateway = { audit, drain: { grace: '5m' } }
  const folder = await configFolder({ ...files, gateway, redis: { url: redis.url, ...more } })
  return { folder, redis }
}

t.test('sign-ins, unsafe requests, refusals, acts and sign-outs have a line each', async t => {
  const gateway = await testGateway(t.after, files)
  const { folder } = gateway
  const cookie = await gateway.signIn('alice')
  await gateway.attempt('bob', wrong)
  const json = { amount: 12.5, customer: { iban: 'DE02120300000000202051' }, note: 'hello' }
  await gateway.call('/api/orders/7?token=hidden-value', { cookie, json })
  await gateway.call('/api/orders/7', { cookie })
  await gateway.call('/api/secret', { cookie, json: { password: 'hidden-value' } })
  await gateway.opsJson('sessions/close', { user: 'bob' })
  await gateway.call('/api/account/logout', { method: 'POST', cookie })

  await lineWhere(folder, ({ kind }) => kind === 'sign-out')
  const alice = { user: 'alice', userId: '1' }
  const expected: ReadonlyArray<readonly [kind: string, line: object]> = [
    ['sign-in', { ...alice, source: 'users-file', status: 200 }],
    ['sign-in.refused', { user: 'bob', code: 'login.refused' }],
    [
      'request',
      {
        ...{ user: 'alice', route: 'orders', method: 'POST', path: '/api/orders/7', status: 200 },
        fields: { 'amount': '12.5', 'customer.iban': '…2051', 'note': /^[\w-]{16}$/ }
      }
    ],
    ['request', { route: 'secret', code: 'route.forbidden', status: 403 }],
    [
      'act',
      { act: 'sessions.close', outcome: 'done', operator: 'operator', detail: { user: 'bob' } }
    ],
    ['sign-out', alice]
  ]
  const all = linesIn(folder)
  for (const kind of new Set(expected.map(([of]) => of))) {
    const lines = all.filter(line => line['kind'] === kind)
    const ofKind = expected.filter(([of]) => of === kind).map(([, line]) => line)
    t.match(lines, ofKind)
    t.equal(lines.length, ofKind.length, `no other ${kind}: a GET has none`)
  }
  const written = JSON.stringify(all)
  for (const secret of [password, 'hidden-value', 'wrong', cookie.split('=')[1] ?? 'none']) {
    t.notOk(written.includes(secret), `${secret} is in no line`)
  }
})

t.test('after kill -9 under load the ledger verifies, and a new file goes on', async t => {
  const folder = await configFolder(files)
  const first = await startGatewayProcess(t.after, folder)
  const load = Array.from({ length: 8 }, async () => {
    try {
      for (;;) await first.attempt('eve', wrong)
    } catch {
      // It was killed.
    }
  })
  await until('some lines are written', () => linesIn(folder).length > 20)
  await first.kill()
  await Promise.all(load)
  t.match(await verify(folder), {
    code: 0,
    out: /note: .* has no end: it is still written, or its process crashed/
  })
  const second = await startGatewayProcess(t.after, folder)
  await lineWhere(folder, ({ kind, others }) => {
    return kind === 'opened' && JSON.stringify(others) !== '{}'
  })
  t.equal(ledgerFiles(folder).length, 2)
  await second.stop()
  t.match(await verify(folder), { code: 0 })
})

t.test('the head stands in Redis', async t => {
  const { folder, redis } = await sharedFolder(t)
  const gateway = await startGatewayProcess(t.after, folder)
  for (let count = 0; count < 30; count++) await gateway.attempt(`user-${count}`, wrong)
  const refused = () => linesIn(folder).filter(({ kind }) => kind === 'sign-in.refused')
  await until('all are written', () => refused().length === 30)
  t.equal(new Set(refused().map(({ user }) => user)).size, 30)
  await gateway.opsJson('sessions/close', { everyone: true })
  await lineWhere(folder, ({ act, outcome }) => act === 'sessions.close' && outcome === 'done')
  await gateway.stop()
  t.match(await verify(folder), { code: 0, out: 'held against the heads in Redis' })
  const [path = '', ...others] = ledgerFiles(folder)
  t.same(others, [])
  writeFileSync(path, `${readFileSync(path, 'utf8').split('\n').slice(0, 20).join('\n')}\n`)
  t.match(await verify(folder), { code: 1, out: 'its end was cut, as the head in Redis says' })
  rmSync(path)
  t.match(await verify(folder), { code: 1, out: 'it was deleted, as the head in Redis says' })
  const client = redis.client()
  const heads = Object.entries(await client.hgetall('{cg}:audit-heads'))
  t.match(heads, [[/^[\w-]+$/, / .+/]])
  t.equal(heads.length, 1)
  const [chain = '', head = ''] = heads[0] ?? []
  const moved = head.replace(/ .*/, ' another-machine /var/audit')
  await client.hset('{cg}:audit-heads', chain, moved)
  t.match(await verify(folder), {
    code: 3,
    out: /warning: .* is not here: a replica with another folder wrote it/
  })
})

t.test('to standard output: the same lines among those of the log', async t => {
  const folder = await configFolder({ gateway: { audit: { ...audit, to: 'stdout' } } })
  const gateway = await startGatewayProcess(t.after, folder)
  await gateway.attempt('eve', wrong)
  await gateway.says('sign-in.refused')
  await gateway.stop()
  const log = join(folder, 'collected.log')
  writeFileSync(log, await gateway.says('stopped'))
  t.match(await verify(folder, '--collected', log), {
    code: 0,
    out: /^as it was written \(3 lines in 1 chain/
  })
  t.match(await verify(folder), { code: 1, err: /--collected/ })
})

t.test('a process that throws finishes what is in flight, and ends with 1', async t => {
  const { folder } = await sharedFolder(t)
  const preload = join(import.meta.dirname, '../support/fault-on-signal.ts')
  const gateway = await startGatewayProcess(t.after, folder, { preload })
  await gateway.ready()
  const posts = [1, 2].map(async () => {
    const response = await fetch(`${gateway.url}/api/held`, { method: 'POST' })
    return `${response.status} ${await response.text()}`
  })
  await until('both are in flight', () => held.length === 2)
  gateway.signal('SIGURG')
  await gateway.says('a fault made by a test')
  await until('not ready', async () => (await gateway.ask('/readyz')).status === 503)
  for (const finish of held) finish()
  t.same(await Promise.all(posts), ['200 ok', '200 ok'])
  t.same(await gateway.ended, { code: 1, signal: null })
  const lines = linesIn(folder).filter(({ kind }) => kind === 'request' || kind === 'lost')
  const line = { kind: 'request', route: 'held' }
  t.match(lines, [line, line])
  t.equal(lines.length, 2)
})

/** What `/readyz` tells operators of it. */
const toldOf = async ({ ops }: TestGateway) =>
  ((await (await ops('/readyz')).json()) as { readonly audit?: string }).audit

t.test('a ledger that cannot be written is told, and stops acts but no traffic', async t => {
  const folder = await configFolder({ gateway: { audit } })
  // A file in the place of the folder: not even root can write below it.
  writeFileSync(join(folder, 'audit'), '')
  const gateway = await testGateway(t.after, folder)
  const told = async () => await toldOf(gateway)
  const { metrics } = gateway
  await until('it is told', async () => (await told()) !== undefined)
  t.match(
    await told(),
    /^cannot be written since 20\S+Z \((EEXIST|ENOTDIR)\): \d+ entries wait, 0 lost$/
  )
  t.equal((await gateway.ops('/readyz')).status, 200)
  t.match(await metrics(), /^console_gateway_audit_writable 0$/m)
  const logged = gateway.log.filter(({ event }) => event === 'audit.unwritable')
  t.equal(logged.length, 1)

  await gateway.signIn('bob')
  const refused = await gateway.ops('/ops/api/reload', { json: {} })
  t.equal(refused.status, 503)
  t.match(await refused.json(), { code: 'ops.ledger' })
  const closed = await gateway.opsJson('sessions/close', { user: 'bob' })
  t.match(closed, { closed: 1 }, 'rights are taken away all the same')
  t.match(await gateway.logged(({ event }) => event === 'audit.late'), {
    act: 'sessions.close',
    operator: 'operator'
  })

  rmSync(join(folder, 'audit'))
  await gateway.logged(({ event }) => event === 'audit.writable')
  await until('the act of before has its lines', () => {
    const acts = linesIn(folder).filter(({ act }) => act === 'sessions.close')
    return acts.map(({ outcome }) => outcome).join() === 'done'
  })
  t.ok(linesIn(folder).some(({ kind, user }) => kind === 'sign-in' && user === 'bob'))
  const reload = linesIn(folder).filter(({ act }) => act === 'config.reload')
  t.match(reload, [{ outcome: 'failed', code: 'ops.ledger' }])
  t.equal(await told(), undefined)
  t.match(await metrics(), /^console_gateway_audit_writable 1$/m)
})

t.test('while Redis hangs the ledger is written, and its head stands there after', async t => {
  const { folder, redis } = await sharedFolder(t, { commandTimeout: '500ms' })
  const gateway = await testGateway(t.after, folder)
  const told = async () => await toldOf(gateway)
  // So short a time-out may strike by itself where this machine stands still.
  await until('signed in', async () => (await gateway.signIn()) !== '')
  await until('a line is written', () => linesIn(folder).some(({ kind }) => kind === 'sign-in'))
  await until('the head is stored', async () => (await told()) === undefined)
  redis.signal('SIGSTOP')
  const reloads = () => linesIn(folder).filter(({ act }) => act === 'config.reload').length
  const before = reloads()
  t.equal((await gateway.ops('/ops/api/reload', { json: {} })).status, 200, 'acts go on')
  t.ok(reloads() > before, 'their lines are on disk')
  const headIsTold = async () => (await told())?.startsWith('its head cannot be stored: ') === true
  await until('the head is told', headIsTold)
  redis.signal('SIGCONT')
  await until('it is stored again', async () => (await told()) === undefined)
  const client = redis.client()
  const chain = String(linesIn(folder)[0]?.['chain'])
  await until('it is that of the last line', async () => {
    const head = (await client.hget('{cg}:audit-heads', chain)) ?? ''
    return head.startsWith(`${String(linesIn(folder).at(-1)?.['mac'])} `)
  })
  t.equal(ledgerFiles(folder).length, 1)
  t.notOk(gateway.log.some(({ event }) => event === 'audit.unwritable'))
})
