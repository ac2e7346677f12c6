import Fastify from 'fastify'
import t from 'tap'
import { schemaController } from '../../src/app/hooks/validation.ts'
import { addLockoutRoutes } from '../../src/ops/lockouts.ts'
import type { Desk } from '../../src/ops/routes.ts'
import { createMemoryLockouts } from '../../src/limits/lockouts.ts'
import { bucketOf } from '../ports/lockouts.ts'
import { run } from '../support/command.ts'
import { password, testGateway } from '../support/gateway.ts'

const login = '/api/auth/admin/login'

t.test('operators see who is locked out, and let them try again', async t => {
  const gateway = await testGateway(t.after, {
    gateway: { server: { trustedProxies: ['127.0.0.1'] } },
    // Longer than any machine takes.
    limits: {
      lockout: {
        accountAndAddress: { failures: 2, every: '10h' },
        address: { failures: 4, every: '10h' },
        account: { failures: 3, every: '10h' }
      },
      limits: {}
    }
  })
  const attempt = async (username: string, address: string, typed = 'wrong', cookie?: string) =>
    gateway.call(login, {
      json: { username, password: typed },
      headers: { 'x-forwarded-for': address },
      ...(cookie !== undefined && { cookie })
    })
  const command = (...words: string[]) => run(['lockouts', ...words, '--config', gateway.folder])
  const listed = async (query = '') =>
    (await (await gateway.ops(`/ops/api/lockouts${query}`)).json()) as {
      lockouts: Array<{ kind: string; account?: string; address?: string }>
      total: number
    }
  t.same(await listed(), { lockouts: [], total: 0 })

  const known = (await attempt('alice', '192.0.2.1', password)).headers
    .getSetCookie()
    .find(cookie => cookie.startsWith('console_known='))
    ?.split(';', 1)[0]
  for (let index = 0; index < 2; index++) await attempt('alice', '192.0.2.1', 'wrong', known)
  for (let index = 0; index < 3; index++) await attempt('Alice ', '192.0.2.1')
  await attempt('alice', '192.0.2.2')
  for (let index = 0; index < 2; index++) await attempt('alice:', '192.0.2.7')
  for (let index = 0; index < 4; index++) await attempt(`user-${index}`, '2001:db8::1')
  const { out } = await command('list')
  t.match(out, /^WHAT +OF +UNTIL\n/)
  t.match(out, /^account +alice +\d{4}-\d\d-\d\dT/m)
  t.match(out, /^account from one address +alice from 192.0.2.1 +\d{4}/m)
  t.match(out, /^known browser +alice +\d{4}/m)
  t.match(out, /^address +2001:db8:: +\d{4}/m)
  const found = JSON.parse((await command('list', '--account', 'ALICE', '--json')).out) as Awaited<
    ReturnType<typeof listed>
  >
  t.strictSame(
    found.lockouts
      .map(lock => ({ ...lock, until: '' }))
      .toSorted((a, b) => a.kind.localeCompare(b.kind)),
    [
      { kind: 'account', account: 'alice', until: '' },
      { kind: 'account from one address', account: 'alice', address: '192.0.2.1', until: '' },
      { kind: 'known browser', account: 'alice', until: '' }
    ]
  )
  t.match(
    await listed('?address=2001:db8::77'),
    { lockouts: [{ kind: 'address' }], total: 1 },
    'by any address of its network'
  )
  const owner = async () => [
    (await attempt('alice', '192.0.2.9', password)).status,
    (await attempt('alice', '192.0.2.1', password)).status,
    (await attempt('alice', '192.0.2.9', password, known)).status,
    (await attempt('bob', '2001:db8::2', password)).status
  ]
  t.same(await owner(), [429, 429, 429, 429])

  t.match(await command('lift', '--account', 'ALICE'), { code: 0, out: 'lifted: 3\n' })
  t.same(await owner(), [200, 200, 200, 429])
  t.match(await command('lift', '--address', '2001:db8::5', '--json'), {
    code: 0,
    out: '{\n  "lifted": 1\n}\n'
  })
  t.equal((await attempt('bob', '2001:db8::2', password)).status, 200)
  t.match(
    (await listed()).lockouts.map(({ account }) => account),
    ['alice:'],
    'who is named almost alike was not lifted'
  )
  t.match(
    gateway.log.filter(({ act }) => act === 'lockouts.lift'),
    [
      { event: 'ops.act', detail: { account: 'ALICE', lifted: 3 } },
      { event: 'ops.act', detail: { address: /^2001:db8::/, lifted: 1 } }
    ]
  )
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
  const list = await ops.inject({ url: '/ops/api/lockouts' })
  const { lockouts: shown, total } = list.json<{ lockouts: unknown[]; total: number }>()
  t.same([shown.length, total], [1000, 1500])
  const payload = { account: 'alice' }
  const lifted = await ops.inject({ method: 'POST', url: '/ops/api/lockouts/lift', payload })
  t.same(lifted.json(), { lifted: 1500 })
})
