import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { inStep } from '../support/failover.ts'
import type { Mode } from '../support/faulty-proxy.ts'
import { behindProxy, networkFault } from '../support/network-fault.ts'
import { testRedis } from '../support/redis.ts'
import { startTrial } from '../support/trial.ts'
import { until } from '../support/until.ts'

const faults: ReadonlyArray<readonly [name: string, mode: Mode, seen: 200 | 503]> = [
  ['nothing goes through, connections stay open', 'swallow', 503],
  ['answers are cut in the middle', 'cut', 503],
  ['200 ms of latency, with the default time-outs', { delayMs: 200 }, 200],
  ['1.5 s of latency', { delayMs: 1500 }, 503]
]

for (const [name, mode, seen] of faults) {
  t.test(`${name}: 200 or 503, nobody is signed out, and all is well once it is over`, async t => {
    await networkFault(t, { name, mode, seen, meanwhile: async () => await wait(1200) })
  })
}

t.test('the address leads to another server, whose replica the old one is: it follows', async t => {
  const { redis, proxy, both } = await behindProxy(t)
  const follow = ['--repl-diskless-sync-delay', '0', '--replicaof', `127.0.0.1 ${redis.port}`]
  const heir = await testRedis(t.after, follow)
  await until('in step', async () =>
    (await heir.cli('INFO', 'replication')).includes('master_link_status:up')
  )
  const trial = await startTrial(t, both, { name: 'the address leads to another server' })
  await inStep(redis, heir)
  await trial.during(async () => {
    proxy.aim(heir.port)
    await heir.cli('REPLICAOF', 'NO', 'ONE')
    await redis.cli('REPLICAOF', '127.0.0.1', String(heir.port))
  })
  await trial.over()
})
