import t from 'tap'
import { testCluster } from '../support/cluster.ts'
import { redisCli, until } from '../support/redis-cli.ts'
import { testSentinel } from '../support/sentinel.ts'
import { replicas, startTrial } from '../support/trial.ts'

/** Resolves once the replicas have all that the primary had when asked. */
async function inStep (primary: number, replica: number): Promise<void> {
  const offset = async (port: number, field: string) => Number(new RegExp(`${field}:(\\d+)`).exec(await redisCli(port, 'INFO', 'replication'))?.[1] ?? 0)
  const wanted = await offset(primary, 'master_repl_offset')
  await until('the replica has it all', async () => await offset(replica, 'slave_repl_offset') >= wanted)
}

for (const how of ['killed', 'frozen'] as const) {
  t.test(`the primary is ${how}, Sentinel makes the replica primary: the gateway follows, and everybody is still signed in`, async t => {
    const sentinel = await testSentinel(t.after)
    const [primary, heir] = sentinel.servers
    const both = await replicas(t, { sentinels: sentinel.sentinels, primary: sentinel.name })
    const trial = await startTrial(t, both, { name: `failover by Sentinel, the primary ${how}`, losesLatest: true, normalWithinMs: 8000 })
    await inStep(primary.port, heir.port)
    await trial.during(async () => {
      if (how === 'killed') await primary.kill()
      else primary.signal('SIGSTOP')
      await until('the replica is primary', async () => await sentinel.primaryPort() === heir.port)
    })
    await trial.over()
    if (how === 'killed') return
    // The old one is back: it must never be taken for the primary again.
    primary.signal('SIGCONT')
    await sentinel.settled()
    const [a, b] = both
    const cookie = await a.signIn()
    t.equal((await b.call('/api/account/logout', { cookie })).status, 200)
    t.equal((await a.call('/api/account/profile', { cookie })).status, 401)
    t.equal(await sentinel.primaryPort(), heir.port)
  })
}

t.test('a planned failover by Sentinel: hardly anything is seen of it', async t => {
  const sentinel = await testSentinel(t.after)
  const both = await replicas(t, { sentinels: sentinel.sentinels, primary: sentinel.name })
  const trial = await startTrial(t, both, { name: 'planned failover (SENTINEL FAILOVER)', losesLatest: true, normalWithinMs: 8000 })
  await trial.during(async () => {
    await redisCli(Number(sentinel.sentinels[0]?.split(':')[1]), 'SENTINEL', 'FAILOVER', sentinel.name)
    await until('the replica is primary', async () => await sentinel.primaryPort() === sentinel.servers[1].port)
  })
  await trial.over()
})

for (const how of ['killed', 'frozen'] as const) {
  t.test(`a primary of a Cluster is ${how}, its replica takes over: the gateway follows, and everybody is still signed in`, async t => {
    const cluster = await testCluster(t.after)
    const both = await replicas(t, { cluster: cluster.nodes.slice(0, 2) })
    // Every session is asked for with the count of sign-outs of everyone: whoever holds that is missed by all.
    const lost = await cluster.primaryOf('cg:session-epoch')
    const trial = await startTrial(t, both, { name: `a primary of a Cluster ${how}`, losesLatest: true, normalWithinMs: 8000 })
    await trial.during(async () => {
      if (how === 'killed') await lost.kill()
      else lost.signal('SIGSTOP')
      await cluster.settled(lost)
    })
    await trial.over()
    if (how === 'frozen') return
    await lost.start()
    await cluster.settled()
    const [a, b] = both
    const cookie = await a.signIn()
    t.equal((await b.call('/api/account/logout', { cookie })).status, 200)
    t.equal((await a.call('/api/account/profile', { cookie })).status, 401)
  })
}
