import t, { type Test } from 'tap'
import { createSecretId, signedInOf } from '../../../src/session/types.ts'
import { testCluster, type TestCluster } from '../../support/cluster.ts'
import { newSession, sessionsOver, storeAt, look, usual } from '../../support/sessions.ts'
import { redisCli } from '../../support/redis-cli.ts'
import { flags, testRedis } from '../../support/redis.ts'
import { profile, starting } from '../../support/trial.ts'
import { until } from '../../support/until.ts'

const epochKey = '{cg}:s:epoch'
const config = { ...usual, perUser: { max: 1000, over: 'refuse' } } as const

/** Two processes with their sessions in a Cluster. */
async function setUp(t: Test) {
  const cluster = await testCluster(t.after)
  return { cluster, here: await processOver(t, cluster), there: await processOver(t, cluster) }
}

async function processOver(t: Test, { nodes }: TestCluster) {
  const given = { cluster: nodes, commandTimeout: 2000 }
  const { store } = await storeAt(t.after, given)
  const sessions = sessionsOver(store, { config })
  await until('changes are announced', () => sessions.store.isFollowed())
  return sessions
}

type Process = Awaited<ReturnType<typeof processOver>>

/** Opens sessions by turns. @returns the values of their cookies */
async function openAll(processes: readonly Process[], count: number): Promise<string[]> {
  const opening = newSession()
  const secretIds = Array.from({ length: count }, () => createSecretId(signedInOf(opening)))
  for (const [n, secretId] of secretIds.entries()) {
    await processes[n % processes.length]!.open(secretId, opening)
  }
  return secretIds
}

async function alive(process: Process, secretIds: readonly string[]): Promise<number> {
  const found = await Promise.all(secretIds.map(async each => await look(process, each)))
  return found.filter(each => 'live' in each).length
}

t.test('everyone is out in a Cluster, at each process, and who comes next is in', async t => {
  const { here, there } = await setUp(t)
  const first = await openAll([here, there], 60)
  t.same([await alive(here, first), await alive(there, first)], [60, 60])
  await here.store.endAll()
  const second = await openAll([here, there], 60)
  t.same([await alive(here, second), await alive(there, second)], [60, 60], 'none is dead at birth')
  t.equal(await alive(here, first), 0)
  await until('the other process hears', async () => (await alive(there, first)) === 0)
  await here.store.endAll()
  t.equal(await alive(here, second), 0)
  await until('the other process hears', async () => (await alive(there, second)) === 0)
})

t.test('a primary that hangs: what is remembered goes on, what is not is 503', async t => {
  const { cluster, here, there } = await setUp(t)
  const [a = '', b = ''] = await openAll([here], 2)
  t.match(await look(here, a), { live: {} })
  const frozen = await cluster.primaryOf(epochKey)
  frozen.signal('SIGSTOP')
  t.after(() => frozen.signal('SIGCONT'))
  t.match(await look(here, a), { live: {} })
  await t.rejects(look(there, b), { code: 'session.unavailable' })
  frozen.signal('SIGCONT')
  await until('all is known again', async () => 'live' in (await look(there, b)))
})

t.test('a gateway that starts while a Cluster is being set up waits for all slots', async t => {
  const options = flags({ 'cluster-enabled': 'yes', 'cluster-announce-ip': '127.0.0.1' })
  const { port } = await testRedis(t.after, options)
  await redisCli(port, 'CLUSTER', 'ADDSLOTSRANGE', '100', '16383')
  const gateway = await starting(t, { cluster: [`127.0.0.1:${port}`] })
  const attempts = async () =>
    Number(/cmdstat_cluster\|slots:calls=(\d+)/.exec(await redisCli(port, 'INFO', 'all'))?.[1] ?? 0)
  await until('it has asked for the slots twice', async () => (await attempts()) >= 2)
  t.equal((await gateway.ops('/readyz')).status, 503)
  t.equal((await gateway.ops('/healthz')).status, 200)
  await redisCli(port, 'CLUSTER', 'ADDSLOTSRANGE', '0', '99')
  await until('ready', async () => (await gateway.ops('/readyz')).status === 200)
  t.equal((await gateway.call(profile, { cookie: await gateway.signIn() })).status, 200)
})
