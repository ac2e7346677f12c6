import t from 'tap'
import { sessionsInSwitch } from '../../support/failover-sessions.ts'

/** More runs find rarer faults: FAILOVER_RUNS=5. */
const runs = Number(process.env['FAILOVER_RUNS'] ?? 1)

for (const how of ['planned', 'killed'] as const) {
  for (const replicas of [1, 2]) {
    for (let run = 1; run <= runs; run++) {
      const name = `${how} failover, ${replicas} replicas, run ${run}`
      t.test(
        `${name}: no acknowledged sign-out is undone, no acknowledged sign-in is lost`,
        async t => {
          const outcome = await sessionsInSwitch(t, how, replicas)
          t.comment(`measured ${JSON.stringify({ name, ...outcome })}`)
          t.same(outcome.unfit, [], 'every answer is 200 or 503')
          t.equal(outcome.signOuts, 60, 'all sign-outs were acknowledged in the end')
          t.equal(outcome.undone, 0, 'sign-outs that are undone')
          t.ok(outcome.signIns > 0, 'there were sign-ins')
          t.equal(outcome.lost, 0, 'sign-ins that are lost')
        }
      )
    }
  }
}
