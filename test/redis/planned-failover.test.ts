/** One failover. More of them, of other kinds: test/long. */
import t from 'tap'
import { keepsAcknowledged } from '../support/failover-sessions.ts'

t.test(
  'a planned failover with 2 replicas: no acknowledged sign-out is undone, no acknowledged sign-in is lost',
  async t => await keepsAcknowledged(t, 'planned', 2)
)
