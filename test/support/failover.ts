/** Trials of failovers: a primary is lost, its replica takes over, gateways follow. */
import type { Test } from 'tap'
import { testCluster } from './cluster.ts'
import { redisCli } from './redis-cli.ts'
import { until } from './until.ts'
import type { TestRedis } from './redis.ts'
import { testSentinel } from './sentinel.ts'
import { replicas, startTrial } from './trial.ts'

export type Loss = 'killed' | 'frozen'

export async function lose(server: TestRedis, how: Loss): Promise<void> {
  if (how === 'killed') await server.kill()
  else server.signal('SIGSTOP')
}

/** Resolves once the replica has all that the primary had when asked. */
export async function inStep(primary: number, replica: number): Promise<void> {
  const offset = async (port: number, field: string) =>
    Number(
      new RegExp(`${field}:(\\d+)`).exec(await redisCli(port, 'INFO', 'replication'))?.[1] ?? 0
    )
  const wanted = await offset(primary, 'master_repl_offset')
  await until(
    'the replica has it all',
    async () => (await offset(replica, 'slave_repl_offset')) >= wanted
  )
}

export async function sentinelFailover(t: Test, how: Loss): Promise<void> {
  const sentinel = await testSentinel(t.after)
  const [primary, heir] = sentinel.servers
  const both = await replicas(t, { sentinels: sentinel.sentinels, primary: sentinel.name })
  const trial = await startTrial(t, both, { name: `failover by Sentinel, the primary ${how}` })
  await inStep(primary.port, heir.port)
  await trial.during(async () => {
    await lose(primary, how)
    await sentinel.downAfter(500)
    await until('the replica is primary', async () => (await sentinel.primaryPort()) === heir.port)
  })
  await trial.over()
  if (how === 'killed') return
  // The old one is back: it must never be taken for the primary again.
  primary.signal('SIGCONT')
  await sentinel.settled()
  const [a, b] = both
  await until('one signs in and out', async () => {
    const cookie = await a.signIn()
    return (
      (await b.call('/api/account/logout', { cookie })).status === 200 &&
      (await a.call('/api/account/profile', { cookie })).status === 401
    )
  })
  t.equal(await sentinel.primaryPort(), heir.port)
}

export async function clusterFailover(t: Test, how: Loss): Promise<void> {
  const cluster = await testCluster(t.after)
  const both = await replicas(t, { cluster: cluster.nodes.slice(0, 2) })
  // All keys are in one slot: whoever holds it is missed by all.
  const lost = await cluster.primaryOf('{cg}:s:epoch')
  const trial = await startTrial(t, both, { name: `a primary of a Cluster ${how}` })
  await cluster.settled()
  const heirs: number[] = []
  for (const { port } of cluster.servers) {
    if ((await redisCli(port, 'INFO', 'replication')).includes(`master_port:${lost.port}\r`)) {
      heirs.push(port)
    }
  }
  if (heirs.length === 0) throw new Error('nobody follows the primary')
  for (const port of heirs) await inStep(lost.port, port)
  await trial.during(async () => {
    await lose(lost, how)
    await cluster.nodeTimeout(700, lost)
    await until(
      'another node holds its slots',
      async () => (await cluster.primaryOf('{cg}:s:epoch', lost)) !== lost
    )
    await cluster.settled(lost)
  })
  await trial.over()
  if (how === 'frozen') return
  await lost.start()
  await cluster.nodeTimeout(700)
  await cluster.settled()
  const [a, b] = both
  await until('one signs in and out', async () => {
    const cookie = await a.signIn()
    return (
      (await b.call('/api/account/logout', { cookie })).status === 200 &&
      (await a.call('/api/account/profile', { cookie })).status === 401
    )
  })
}
