import Fastify from 'fastify'
import t from 'tap'
import { schemaController } from '../../src/app/hooks/validation.ts'
import { addLockoutRoutes } from '../../src/ops/lockouts.ts'
import type { Desk } from '../../src/ops/routes.ts'
import { createMemoryLockouts } from '../../src/limits/lockouts.ts'
import { bucketOf } from '../ports/lockouts.ts'
import { run } from '../support/command.ts'
import { cookieOf, password, testGateway } from '../support/gateway.ts'

type Tree = Record<string, any>

t.test('operators see who is locked out, and let them try again', async t => {
  // Longer than any machine takes.
  const every = '10h'
  const lockout = {
    accountAndAddress: { failures: 2, every },
    address: { failures: 4, every },
    account: { failures: 3, every }
  }
  const gateway = await testGateway(t.after, {
    gateway: { server: { trustedProxies: ['127.0.0.1'] } },
    limits: { lockout, limits: {} }
  })
  const attempt = async (username: string, address: string, typed = 'wrong', cookie?: string) =>
    await gateway.call('/api/auth/admin/login', {
      json: { username, password: typed },
      headers: { 'x-forwarded-for': address },
      ...(cookie !== undefined && { cookie })
    })
  const fail = async (times: number, ...as: Parameters<typeof attempt>) => {
    for (let index = 0; index < times; index++) await attempt(...as)
  }
  const command = async (...words: string[]) =>
    await run(['lockouts', ...words, '--config', gateway.folder])
  const listed = async (query = '') => await gateway.opsJson(`lockouts${query}`)
  t.same(await listed(), { lockouts: [], total: 0 })

  const known = cookieOf(await attempt('alice', '192.0.2.1', password), 'console_known')
  await fail(2, 'alice', '192.0.2.1', 'wrong', known)
  await fail(3, 'Alice ', '192.0.2.1')
  await fail(1, 'alice', '192.0.2.2')
  await fail(2, 'alice:', '192.0.2.7')
  for (let index = 0; index < 4; index++) await attempt(`user-${index}`, '2001:db8::1')
  const { out } = await command('list')
  t.match(out, /^WHAT +OF +UNTIL\n/)
  for (const line of [
    'account +alice',
    'account from one address +alice from 192.0.2.1',
    'known browser +alice',
    'address +2001:db8::'
  ]) {
    t.match(out, new RegExp(`^${line} +\\d{4}-\\d\\d-\\d\\dT`, 'm'))
  }
  const found = JSON.parse((await command('list', '--account', 'ALICE', '--json')).out) as Tree
  const locks = found['lockouts'].map((lock: Tree) =>
    JSON.stringify(lock, ['kind', 'account', 'address'])
  )
  t.same(locks.toSorted(), [
    '{"kind":"account from one address","account":"alice","address":"192.0.2.1"}',
    '{"kind":"account","account":"alice"}',
    '{"kind":"known browser","account":"alice"}'
  ])
  const ofNetwork = await listed('?address=2001:db8::77')
  t.match(ofNetwork, { lockouts: [{ kind: 'address' }], total: 1 }, 'by any of its addresses')
  const owner = async () => [
    (await attempt('alice', '192.0.2.9', password)).status,
    (await attempt('alice', '192.0.2.1', password)).status,
    (await attempt('alice', '192.0.2.9', password, known)).status,
    (await attempt('bob', '2001:db8::2', password)).status
  ]
  t.same(await owner(), [429, 429, 429, 429])

  t.match(await command('lift', '--account', 'ALICE'), { code: 0, out: 'lifted: 3\n' })
  t.same(await owner(), [200, 200, 200, 429])
  const lifted = await command('lift', '--address', '2001:db8::5', '--json')
  t.match(lifted, { code: 0, out: '{\n  "lifted": 1\n}\n' })
  t.equal((await attempt('bob', '2001:db8::2', password)).status, 200)
  t.match((await listed()).lockouts, [{ account: 'alice:' }], 'who is named almost alike')
  const acts = gateway.log.filter(({ act }) => act === 'lockouts.lift')
  t.match(acts, [
    { event: 'ops.act', detail: { account: 'ALICE', lifted: 3 } },
    { event: 'ops.act', detail: { address: /^2001:db8::/, lifted: 1 } }
  ])
})

t.test('of very many the first are shown, and all of an account are lifted', async t => {
  const lockouts = createMemoryLockouts()
  for (let index = 0; index < 1500; index++) {
    await lockouts.take([bucketOf(`browser alice ${index}`, 1)])
  }
  const ops = Fastify({ schemaController })
  ops.decorate('acts', new Map())
  ops.decorate('actsTo', { ledger: undefined, log: { info: () => {} } as never })
  addLockoutRoutes(ops, { lockouts } as unknown as Desk)
  t.teardown(() => ops.close())
  const list = (await ops.inject({ url: '/ops/api/lockouts' })).json<Tree>()
  t.same([list['lockouts'].length, list['total']], [1000, 1500])
  const payload = { account: 'alice' }
  const lifted = await ops.inject({ method: 'POST', url: '/ops/api/lockouts/lift', payload })
  t.same(lifted.json(), { lifted: 1500 })
})
