/** The audit ledger of a running gateway that cannot be written, and what operators learn of it. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import t from 'tap'
import { configFolder, type TestGateway, testGateway } from '../support/gateway.ts'
import { ledgerFiles, linesIn } from '../support/ledger.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

const env = {
  AUDIT_KEY: 'an audit key of at least thirty-two bytes',
  SESSION_SECRET: 'a session secret of at least thirty-two'
}
const withLedger = { audit: { key: '${AUDIT_KEY}' } }

/** What `/readyz` tells operators of it. */
const toldOf = async ({ ops }: TestGateway) =>
  ((await (await ops('/readyz')).json()) as { readonly audit?: string }).audit

t.test('a ledger that cannot be written is told, and stops acts but no traffic', async t => {
  const folder = await configFolder({ gateway: withLedger })
  // A file in the place of the folder: not even root can write below it.
  writeFileSync(join(folder, 'audit'), '')
  const gateway = await testGateway(t.after, folder, env)
  const audit = async () => await toldOf(gateway)
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

t.test('while Redis hangs the ledger is written, and its head stands there after', async t => {
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
  const audit = async () => await toldOf(gateway)
  // So short a time-out may strike by itself where this machine stands still.
  await until('signed in', async () => (await gateway.signIn()) !== '')
  await until('a line is written', () => linesIn(folder).some(({ kind }) => kind === 'sign-in'))
  await until('the head is stored', async () => (await audit()) === undefined)
  redis.signal('SIGSTOP')
  const reloads = () => linesIn(folder).filter(({ act }) => act === 'config.reload').length
  const before = reloads()
  t.equal((await gateway.ops('/ops/api/reload', { json: {} })).status, 200, 'acts go on')
  t.ok(reloads() > before, 'their lines are on disk')
  const headIsTold = async () => (await audit())?.startsWith('its head cannot be stored: ') === true
  await until('the head is told', headIsTold)
  redis.signal('SIGCONT')
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
