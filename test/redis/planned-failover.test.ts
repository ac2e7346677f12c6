/** One failover. More of them, of other kinds: test/long. */
import t from 'tap'
import { sessionsInSwitch } from '../support/failover-sessions.ts'

t.test(
  'a planned failover with 2 replicas: no acknowledged sign-out is undone, no acknowledged sign-in is lost',
  async t => {
    const outcome = await sessionsInSwitch(t, 'planned', 2)
    t.comment(`measured ${JSON.stringify(outcome)}`)
    t.same(outcome.unfit, [], 'every answer is 200 or 503')
    t.equal(outcome.signOuts, 60, 'all sign-outs were acknowledged in the end')
    t.equal(outcome.undone, 0, 'sign-outs that are undone')
    t.ok(outcome.signIns > 0, 'there were sign-ins')
    t.equal(outcome.lost, 0, 'sign-ins that are lost')
  }
)
