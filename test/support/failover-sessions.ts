/** Sessions that are closed and opened while Sentinel makes another server the primary, and what became of them. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import type { TestGateway } from './gateway.ts'
import { createJudge, judgedUsers } from './judge.ts'
import { testSentinel } from './sentinel.ts'
import { replicas } from './trial.ts'
import { again, until } from './until.ts'

const sessions = 60
const betweenMs = 60

/**
 * That no acknowledged sign-out is undone, and no acknowledged sign-in is lost: 60 sessions are closed
 * one after the other, and others opened meanwhile, from before the switch until after it.
 */
export async function keepsAcknowledged(t: Test, how: 'planned' | 'killed', replicaCount: number) {
  const sentinel = await testSentinel(t.after, { replicas: replicaCount })
  const [primary] = sentinel.servers
  const gateways = await replicas(t, { sentinels: sentinel.sentinels, primary: sentinel.name })
  const at = (n: number) => gateways[n % 2] as TestGateway
  const judge = createJudge()
  const { signIn, signOut, recount } = judgedUsers({ judge, isFit: ({ status }) => status !== 429 })

  async function switchPrimary(): Promise<void> {
    if (how === 'planned') await sentinel.failover()
    else {
      await primary.kill()
      await sentinel.downAfter(500)
    }
    await until(
      'another server is primary',
      async () => (await sentinel.primaryPort()) !== primary.port
    )
  }

  let count = 0
  while (judge.sessions().length < sessions) await signIn('alice', at(count++))
  const endSignIns = again(async () => {
    await signIn('alice', at(count++))
    await wait(betweenMs)
  })
  let switching: Promise<unknown> = Promise.resolve()
  for (const [n, session] of judge.sessions().slice(0, sessions).entries()) {
    // A sixth of the sign-outs come before the switch.
    if (n === Math.floor(sessions / 6)) switching = switchPrimary()
    // One that is refused is tried again until it is acknowledged.
    await until('a sign-out is acknowledged', async () => await signOut(session, at(n)))
    await wait(betweenMs)
  }
  await switching
  await endSignIns()
  // Only once the old primary follows the new one is everything gone that only the old one had.
  if (how === 'killed') await primary.start()
  await until('the old primary is a replica', async () =>
    (await primary.cli('ROLE')).startsWith('slave')
  )
  await sentinel.settled()

  await recount(gateways)
  t.comment(`measured ${JSON.stringify({ how, replicaCount, ...judge.counts })}`)
  t.same(judge.problems, [], 'no sign-out is undone, no sign-in lost, every answer is 200 or 503')
  t.ok(judge.sessions().length > sessions, 'there were sign-ins')
}
