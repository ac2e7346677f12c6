import t from 'tap'
import { until } from '../support/redis-cli.ts'
import { testSentinel } from '../support/sentinel.ts'
import { replicas, startTrial } from '../support/trial.ts'

const rounds = Number(process.env['CHAOS_FAILOVERS'] ?? 6)

t.test(`${rounds} failovers by Sentinel, one after the other: the gateway follows each`, async t => {
  const sentinel = await testSentinel(t.after)
  const both = await replicas(t, { sentinels: sentinel.sentinels, primary: sentinel.name })
  for (let n = 1; n <= rounds; n++) {
    const at = await sentinel.primaryPort()
    const [primary, heir] = sentinel.servers[0].port === at ? sentinel.servers : sentinel.servers.toReversed()
    if (primary === undefined || heir === undefined) throw new Error('there is no primary')
    const frozen = n % 3 === 0
    const trial = await startTrial(t, both, { name: `failover ${n}, the primary ${frozen ? 'frozen' : 'killed'}`, losesLatest: true, normalWithinMs: 8000 })
    await trial.during(async () => {
      if (frozen) primary.signal('SIGSTOP')
      else await primary.kill()
      await until('the replica is primary', async () => await sentinel.primaryPort() === heir.port)
    })
    await trial.over()
    if (frozen) primary.signal('SIGCONT')
    else await primary.start()
    await sentinel.settled()
  }
})
