/** One failover. More of them, of other kinds: test/long. */
import t from 'tap'
import { keepsAcknowledged } from '../support/failover-sessions.ts'

t.test('a planned failover undoes no acknowledged sign-out and loses no sign-in', async t => {
  await keepsAcknowledged(t, 'planned', 2)
})
