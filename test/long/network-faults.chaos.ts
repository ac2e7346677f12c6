import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import type { Mode } from '../support/faulty-proxy.ts'
import { inStep } from '../support/failover.ts'
import { behindProxy, networkFault } from '../support/network-fault.ts'
import { redisCli } from '../support/redis-cli.ts'
import { until } from '../support/until.ts'
import { testRedis } from '../support/redis.ts'
import { startTrial } from '../support/trial.ts'

const faults: ReadonlyArray<{ name: string; mode: Mode; seen: 200 | 503 }> = [
  { name: 'nothing goes through, connections stay open', mode: 'swallow', seen: 503 },
  { name: 'answers are cut in the middle', mode: 'cut', seen: 503 },
  { name: '200 ms of latency, with the default time-outs', mode: { delayMs: 200 }, seen: 200 },
  { name: '1.5 s of latency', mode: { delayMs: 1500 }, seen: 503 }
]

for (const fault of faults) {
  t.test(
    `${fault.name}: 200 or 503, nobody is signed out, and all is well once it is over`,
    async t => {
      await networkFault(t, { ...fault, meanwhile: async () => await wait(1200) })
    }
  )
}

for (const mode of ['lose-answers', 'swallow'] as const) {
  t.test(
    `connections that are there go dead (${mode}): the gateway notices and dials anew, without help`,
    async t => {
      const { proxy, both } = await behindProxy(t)
      const trial = await startTrial(t, both, {
        name: `connections that are there go dead (${mode})`
      })
      await trial.during(async () => await proxy.set(mode, 'there'))
      await trial.over()
    }
  )
}

t.test(
  'the address leads to another server, the old one is a replica now: the gateway follows',
  async t => {
    const { redis, proxy, both } = await behindProxy(t)
    const heir = await testRedis(t.after, [
      '--repl-diskless-sync-delay',
      '0',
      '--replicaof',
      `127.0.0.1 ${redis.port}`
    ])
    await until('in step', async () =>
      (await redisCli(heir.port, 'INFO', 'replication')).includes('master_link_status:up')
    )
    const trial = await startTrial(t, both, { name: 'the address leads to another server' })
    await inStep(redis.port, heir.port)
    await trial.during(async () => {
      proxy.aim(heir.port)
      await redisCli(heir.port, 'REPLICAOF', 'NO', 'ONE')
      await redisCli(redis.port, 'REPLICAOF', '127.0.0.1', String(heir.port))
    })
    await trial.over()
  }
)
