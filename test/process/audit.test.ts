/** The audit ledger of a running gateway that cannot be written, and what operators learn of it. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { hashOf } from '../support/users.ts'
import { configFolder, password, type TestGateway, testGateway } from '../support/gateway.ts'
import { ledgerFiles, type LedgerLine, linesIn } from '../support/ledger.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const env = {
  AUDIT_KEY: 'an audit key of at least thirty-two bytes',
  SESSION_SECRET: 'a session secret of at least thirty-two'
}
const withLedger = { audit: { key: '${AUDIT_KEY}' } }

/** The reasons that `/readyz` tells operators. */
const reasonsOf = async ({ ops }: TestGateway) =>
  (await (await ops('/readyz')).json()) as { readonly [part in 'audit' | 'maintenance']?: string }

t.test('a ledger that cannot be written is told, and stops acts but no traffic', async t => {
  const folder = await configFolder({ gateway: withLedger })
  // A file in the place of the folder: not even root can write below it.
  writeFileSync(join(folder, 'audit'), '')
  const gateway = await testGateway(t.after, folder, env)
  const audit = async () => (await reasonsOf(gateway)).audit
  const metrics = async () => await (await gateway.ops('/metrics')).text()
  await until('it is told', async () => (await audit()) !== undefined)
  t.match(
    await audit(),
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
  const closed = await gateway.ops('/ops/api/sessions/close', { json: { user: 'bob' } })
  t.match(await closed.json(), { closed: 1 }, 'rights are taken away all the same')
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
  t.equal(await audit(), undefined)
  t.match(await metrics(), /^console_gateway_audit_writable 1$/m)
})

t.test('a reload that is refused has a line too', async t => {
  const alice = { password: hashOf(password) }
  const names = ['bob', 'carol', 'dave', 'erin', 'frank']
  const users = Object.fromEntries(['alice', ...names].map(name => [name, alice]))
  const files = { gateway: withLedger, users: { users } }
  const gateway = await testGateway(t.after, files, env)
  writeFileSync(join(gateway.folder, 'users.yaml'), JSON.stringify({ users: { alice } }))
  const ask = async (json: object) =>
    ((await (await gateway.ops('/ops/api/reload', { json })).json()) as LedgerLine)['outcome']
  t.equal(await ask({}), 'refused')
  t.equal(await ask({ yes: true }), 'reloaded')
  const lines = () =>
    linesIn(gateway.folder).filter(({ kind }) => String(kind).startsWith('config.'))
  await until('both have their lines', () => lines().length === 2)
  t.match(lines(), [
    {
      kind: 'config.reload',
      outcome: 'refused',
      detail: { 1: /5 of 6 users of source users-file vanish/ }
    },
    { kind: 'config.reload', outcome: 'done' }
  ])
})

t.test('maintenance in force is told, and its acts have lines', async t => {
  const { url } = await testUpstream(t.after, json(200, {}))
  const routes = {
    upstreams: { api: { url } },
    routes: { orders: { path: '/api/orders', upstream: 'api' } }
  }
  const gateway = await testGateway(t.after, { gateway: withLedger, routes }, env)
  const { folder } = gateway
  const maintenance = async () => (await reasonsOf(gateway)).maintenance
  t.equal(await maintenance(), undefined)
  const end = new Date(Date.now() + 3_600_000).toISOString()
  await gateway.ops('/ops/api/maintenance', { json: { until: end, routes: ['orders'] } })
  t.equal(await maintenance(), `operator closes orders until ${end}`)
  await gateway.ops('/ops/api/maintenance/end', { json: {} })
  t.equal(await maintenance(), undefined)
  await until('both acts have their lines', () => {
    return linesIn(folder).filter(({ kind }) => kind === 'act').length === 2
  })
  const acts = linesIn(folder).filter(({ kind }) => kind === 'act')
  t.match(acts, [
    { act: 'maintenance.begin', outcome: 'done', operator: 'operator', detail: { until: end } },
    { act: 'maintenance.end', outcome: 'done' }
  ])
})

t.test('while Redis is away the ledger is written, and its head stands there after', async t => {
  const redis = await testRedis(t.after)
  const gateway = await testGateway(
    t.after,
    {
      gateway: {
        ...withLedger,
        redis: { url: redis.url, commandTimeout: '500ms' },
        session: { secrets: ['${SESSION_SECRET}'] }
      }
    },
    env
  )
  const { folder } = gateway
  const audit = async () => (await reasonsOf(gateway)).audit
  // So short a time-out may strike by itself where this machine stands still.
  await until('signed in', async () => (await gateway.signIn()) !== '')
  await until('a line is written', () => linesIn(folder).some(({ kind }) => kind === 'sign-in'))
  await until('the head is stored', async () => (await audit()) === undefined)
  await redis.kill()
  const reloads = () => linesIn(folder).filter(({ act }) => act === 'config.reload').length
  const before = reloads()
  t.equal((await gateway.ops('/ops/api/reload', { json: {} })).status, 200, 'acts go on')
  t.ok(reloads() > before, 'their lines are on disk')
  const headIsTold = async () => (await audit())?.startsWith('its head cannot be stored: ') === true
  await until('the head is told', headIsTold)
  await redis.start()
  await until('it is stored again', async () => (await audit()) === undefined)
  const client = new Redis(redis.url)
  t.after(() => client.disconnect())
  const chain = String(linesIn(folder)[0]?.['chain'])
  await until('it is that of the last line', async () => {
    const head = (await client.hget('{cg}:audit-heads', chain)) ?? ''
    return head.startsWith(`${String(linesIn(folder).at(-1)?.['mac'])} `)
  })
  t.equal(ledgerFiles(folder).length, 1)
  t.notOk(gateway.log.some(({ event }) => event === 'audit.unwritable'))
})
