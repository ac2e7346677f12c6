import t from 'tap'
import { keepsAcknowledged } from '../../support/failover-sessions.ts'

/** More runs find rarer faults: FAILOVER_RUNS=5. */
const runs = Number(process.env['FAILOVER_RUNS'] ?? 1)

for (const how of ['planned', 'killed'] as const) {
  for (const replicas of [1, 2]) {
    for (let run = 1; run <= runs; run++) {
      const name = `${how} failover, ${replicas} replicas, run ${run}`
      t.test(
        `${name}: no acknowledged sign-out is undone, no acknowledged sign-in is lost`,
        async t => await keepsAcknowledged(t, how, replicas)
      )
    }
  }
}
