import t from 'tap'
import { clusterFailover, inStep, lose, sentinelFailover } from '../support/failover.ts'
import { until } from '../support/until.ts'
import { patientMs, testSentinel } from '../support/sentinel.ts'
import { replicas, startTrial } from '../support/trial.ts'

const rounds = Number(process.env['CHAOS_FAILOVERS'] ?? 3)

t.test(
  'the primary is frozen, Sentinel makes the replica primary: the gateway follows, and never goes back to the old one',
  async t => await sentinelFailover(t, 'frozen')
)

t.test(
  'a primary of a Cluster is frozen, its replica takes over: the gateway follows, and everybody is still signed in',
  async t => await clusterFailover(t, 'frozen')
)

t.test(
  `${rounds} failovers by Sentinel, one after the other: the gateway follows each`,
  async t => {
    const sentinel = await testSentinel(t.after)
    const both = await replicas(t, { sentinels: sentinel.sentinels, primary: sentinel.name })
    for (let n = 1; n <= rounds; n++) {
      const at = await sentinel.primaryPort()
      const [primary, heir] =
        sentinel.servers[0].port === at ? sentinel.servers : sentinel.servers.toReversed()
      if (primary === undefined || heir === undefined) throw new Error('there is no primary')
      const how = n % 3 === 0 ? 'frozen' : 'killed'
      const trial = await startTrial(t, both, { name: `failover ${n}, the primary ${how}` })
      // Right after it came back a replica lags behind: what it has not heard is lost with the primary.
      await inStep(primary.port, heir.port)
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
    }
  }
)
