import t from 'tap'
import { clusterFailover, sentinelFailover } from '../../support/failover.ts'

t.test(
  'the primary is killed, Sentinel makes the replica primary: the gateway follows, and everybody is still signed in',
  async t => await sentinelFailover(t, 'killed')
)

t.test(
  'a primary of a Cluster is killed, its replica takes over: the gateway follows, and everybody is still signed in',
  async t => await clusterFailover(t, 'killed')
)
