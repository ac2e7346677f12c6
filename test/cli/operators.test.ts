/** Commands of operators beside their transcripts: strange texts, terminals, replicas, very many. */
import { PassThrough, Readable } from 'node:stream'
import t, { type Test } from 'tap'
import { runCli } from '../../src/cli/main.ts'
import { run } from '../support/command.ts'
import {
  type Called,
  cookieOf,
  password,
  testGateway,
  type TestGateway
} from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'

// Longer than any machine takes.
const every = '10h'
const lockout = {
  accountAndAddress: { failures: 2, every },
  address: { failures: 4, every },
  account: { failures: 3, every }
}
const gateway = await testGateway(t.after, {
  gateway: { server: { trustedProxies: ['127.0.0.1'] } },
  limits: { lockout }
})
const why = async (...words: string[]) => await run(['why', ...words, '-c', gateway.folder])
const idOf = ({ headers }: Called) => headers.get('x-request-id') ?? ''
const isKept = async (path: string, id: string) =>
  await gateway.logged(line => line['requestId'] === id && line['path'] === path)

t.test('an id that was used twice names both requests; one of 64 characters is found', async t => {
  const id = `${'a'.repeat(62)}.-`
  for (const path of ['/api/account/profile', '/api/nowhere']) {
    t.equal(idOf(await gateway.call(path, { headers: { 'x-request-id': id } })), id)
    await isKept(path, id)
  }
  const { out } = await why(id)
  t.match(out, /^The id was used by 2 requests\./)
  t.match(out, /GET \/api\/nowhere → 404[^]*GET \/api\/account\/profile → 401/)
})

t.test('names and paths of clients reach no terminal', async t => {
  const username = 'eve\u001b]0;owned\u0007\u202e\n  error  none'
  const id = idOf(await gateway.attempt(username))
  await isKept('/api/auth/admin/login', id)
  await gateway.call(`/api/${encodeURI('\u001b[2J')}`)
  for (const words of [[id], ['--last', '5'], ['--last', '500']]) {
    const { out } = await why(...words)
    t.match(out, 'owned')
    t.notMatch(out, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]|^ {2}error +none/m)
  }
})

t.test('at a terminal all are signed out only after a yes', async t => {
  for (const [typed, code] of [
    ['\r', 1],
    ['n', 1],
    ['y', 0]
  ] as const) {
    await gateway.signIn('bob')
    const stderr = new PassThrough()
    const keys = Readable.from([Buffer.from(typed)])
    const stdin = Object.assign(keys, { isTTY: true, setRawMode: () => {} })
    const io = { env: { ...process.env }, stdin, stdout: new PassThrough(), stderr }
    const words = ['sessions', 'close', '--everyone', '--config', gateway.folder]
    t.equal(await runCli(words, io), code, typed)
    t.match(String(stderr.read()), /Sign out everyone \(1 user\)\?/)
  }
})

t.test('operators see who is locked out, and let them try again', async t => {
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
  const { out: found } = await command('list', '--account', 'ALICE', '--json')
  const alice = { account: 'alice' }
  t.match(JSON.parse(found), { lockouts: [alice, alice, alice], total: 3 })
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

const limits = async ({ folder }: TestGateway, what: string) =>
  await run(['limits', what, '127.0.0.1', '-c', folder, '--json'])

const redis = await testRedis(t.after)

async function replica(t: Test, commandTimeout: string) {
  const gateway = await testGateway(t.after, {
    redis: { url: redis.url, commandTimeout },
    limits: { limits: { anonymous: { by: 'address', max: 5, window: '1h' } } }
  })
  await gateway.ready()
  return gateway
}

t.test('a reset at one replica holds at the others within a second or two', async t => {
  const [one, other] = [await replica(t, '30s'), await replica(t, '30s')]
  const isOver = async ({ status }: TestGateway) => (await status('/api/session')) === 429
  const isOverAtBoth = async () => (await isOver(one)) && (await isOver(other))
  await until('both know that the address is over its limit', isOverAtBoth)
  const { out } = await limits(one, 'show')
  t.match(JSON.parse(out), { limits: [{ limit: 'anonymous', exceeded: true }] })
  await limits(one, 'reset')
  t.notOk(await isOver(one), 'at once where it was said')
  await until('the other has heard of it', async () => !(await isOver(other)), 10_000)
})

t.test('of very many the first are shown, and all of an account are lifted', async t => {
  const { opsJson } = await replica(t, '30s')
  const end = Date.now() + 600_000
  const locks = Array.from({ length: 1500 }, (_, index) => [end, `browser alice ${index}`])
  await redis.client().zadd('{cg}:locks', ...locks.flat())
  await until('all are counted', async () => (await opsJson('lockouts')).total === 1500)
  t.equal((await opsJson('lockouts')).lockouts.length, 1000)
  t.same(await opsJson('lockouts/lift', { account: 'alice' }), { lifted: 1500 })
})

t.test('what Redis cannot be asked for is said', async t => {
  const gateway = await replica(t, '300ms')
  await gateway.attempt('alice')
  await redis.kill()
  const err = /Redis, which holds the counts, does not answer/
  t.match(await limits(gateway, 'show'), { code: 1, err })
})

t.end()
