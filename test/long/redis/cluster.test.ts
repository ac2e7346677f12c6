import t, { type Test } from 'tap'
import { testCluster, type TestCluster } from '../../support/cluster.ts'
import { testGateway } from '../../support/gateway.ts'
import { look, sessionsOver, signIn, storeAt } from '../../support/sessions.ts'
import { flags, testRedis } from '../../support/redis.ts'
import { profile } from '../../support/trial.ts'
import { until } from '../../support/until.ts'

const epochKey = '{cg}:s:epoch'

/** Sessions of a process, in a Cluster. */
async function processOver(t: Test, { nodes }: TestCluster) {
  const given = { cluster: nodes, commandTimeout: 2000 }
  const { store } = await storeAt(t.after, given)
  const sessions = sessionsOver(store)
  await until('changes are announced', () => sessions.store.isFollowed())
  return sessions
}

t.test('a primary that hangs: what is remembered goes on, what is not is 503', async t => {
  const cluster = await testCluster(t.after)
  const [here, there] = [await processOver(t, cluster), await processOver(t, cluster)]
  const [{ secretId: a }, { secretId: b }] = [await signIn(here), await signIn(here)]
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
  const { port, cli } = await testRedis(t.after, options)
  await cli('CLUSTER', 'ADDSLOTSRANGE', '100', '16383')
  const redis = { cluster: [`127.0.0.1:${port}`] }
  const gateway = await testGateway(t.after, { redis })
  const attempts = async () =>
    Number(/cmdstat_cluster\|slots:calls=(\d+)/.exec(await cli('INFO', 'all'))?.[1] ?? 0)
  await until('it has asked for the slots twice', async () => (await attempts()) >= 2)
  t.equal((await gateway.ops('/readyz')).status, 503)
  t.equal((await gateway.ops('/healthz')).status, 200)
  await cli('CLUSTER', 'ADDSLOTSRANGE', '0', '99')
  await gateway.ready()
  t.equal(await gateway.status(profile, { cookie: await gateway.signIn() }), 200)
})
