/** A whole server of Redis is lost: gateways follow to another, everybody is signed in. */
import t from 'tap'
import { testCluster } from '../../support/cluster.ts'
import { inStep, lose } from '../../support/failover.ts'
import type { TestGateway } from '../../support/gateway.ts'
import type { TestRedis } from '../../support/redis.ts'
import { patientMs, testSentinel } from '../../support/sentinel.ts'
import { profile, replicas, startTrial } from '../../support/trial.ts'
import { until } from '../../support/until.ts'

const rounds = Number(process.env['CHAOS_FAILOVERS'] ?? 3)

/** After the lost server is back, too. */
const worksAgain = async ([a, b]: readonly [TestGateway, TestGateway]) =>
  await until('one signs in and out', async () => {
    const cookie = await a.signIn()
    return (
      (await b.call('/api/account/logout', { cookie })).status === 200 &&
      (await a.call(profile, { cookie })).status === 401
    )
  })

t.test(
  `${rounds} times Sentinel replaces a primary, killed or frozen: the gateway follows`,
  async t => {
    const { servers, sentinels, name, ...sentinel } = await testSentinel(t.after)
    const both = await replicas(t, { sentinels, primary: name })
    for (let n = 1; n <= rounds; n++) {
      const how = n % 3 === 2 ? 'frozen' : 'killed'
      const at = await sentinel.primaryPort()
      const [primary, heir] = servers[0].port === at ? servers : servers.toReversed()
      if (primary === undefined || heir === undefined) throw new Error('there is no primary')
      const trial = await startTrial(t, both, { name: `failover ${n}, the primary ${how}` })
      // Right after it came back a replica lags behind: what it has not heard is lost with the primary.
      await inStep(primary, heir)
      await trial.during(async () => {
        await lose(primary, how)
        await sentinel.downAfter(500)
        await until(
          'the replica is primary',
          async () => (await sentinel.primaryPort()) === heir.port
        )
      })
      await trial.over()
      await sentinel.downAfter(patientMs)
      if (how === 'frozen') primary.signal('SIGCONT')
      else await primary.start()
      await sentinel.settled()
      // The old one is back: it must never be taken for the primary again.
      t.equal(await sentinel.primaryPort(), heir.port)
      await worksAgain(both)
    }
  }
)

for (const how of ['killed', 'frozen'] as const) {
  t.test(`a primary of a Cluster is ${how}, its replica takes over`, async t => {
    const cluster = await testCluster(t.after)
    const both = await replicas(t, { cluster: cluster.nodes.slice(0, 2) })
    // All keys are in one slot: whoever holds it is missed by all.
    const lost = await cluster.primaryOf('{cg}:s:epoch')
    const trial = await startTrial(t, both, { name: `a primary of a Cluster ${how}` })
    await cluster.settled()
    const follows = async ({ cli }: TestRedis) =>
      (await cli('INFO', 'replication')).includes(`master_port:${lost.port}\r`)
    for (const server of cluster.servers) {
      if (await follows(server)) await inStep(lost, server)
    }
    await trial.during(async () => {
      await lose(lost, how)
      await cluster.nodeTimeout(700, lost)
      await until(
        'another node holds its slots',
        async () => (await cluster.primaryOf('{cg}:s:epoch', lost)) !== lost
      )
      await cluster.settled(lost)
    })
    await trial.over()
    if (how === 'frozen') lost.signal('SIGCONT')
    else await lost.start()
    await cluster.nodeTimeout(700)
    await cluster.settled()
    await worksAgain(both)
  })
}
