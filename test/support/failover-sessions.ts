/** Sessions that are closed and opened while Sentinel makes another server the primary, and what became of them. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { cookieOf, password, type TestGateway } from './gateway.ts'
import { redisCli } from './redis-cli.ts'
import { testSentinel, type TestSentinel } from './sentinel.ts'
import { profile, replicas } from './trial.ts'
import { until } from './until.ts'

export type Switch = 'planned' | 'killed'

const sessions = 60
const betweenMs = 60

/**
 * That no acknowledged sign-out is undone, and no acknowledged sign-in is lost: 60 sessions are closed
 * one after the other, and others opened meanwhile, from before the switch until after it.
 */
export async function keepsAcknowledged(t: Test, how: Switch, replicaCount: number) {
  const sentinel = await testSentinel(t.after, { replicas: replicaCount })
  const gateways = await replicas(t, { sentinels: sentinel.sentinels, primary: sentinel.name })
  const at = (n: number) => gateways[n % 2] as TestGateway
  /** Answers other than 200 and 503. */
  const unfit: string[] = []
  const refused = { signIns: 0, signOuts: 0 }
  const opened = new Set<string>()

  async function signIn(n: number): Promise<void> {
    const json = { username: 'alice', password }
    const answer = await at(n).call('/api/auth/admin/login', { json })
    if (answer.status === 200) opened.add(cookieOf(answer))
    else if (answer.status === 503) refused.signIns++
    else unfit.push(`sign-in ${answer.status} ${answer.text}`)
  }
  /** One that is refused is tried again until it is acknowledged. */
  const signOut = async (n: number, cookie: string) =>
    await until('a sign-out is acknowledged', async () => {
      const answer = await at(n).call('/api/account/logout', { cookie, method: 'POST' })
      if (answer.status === 503) refused.signOuts++
      else if (answer.status !== 200) unfit.push(`sign-out ${answer.status} ${answer.text}`)
      return answer.status !== 503
    })
  /** How many are answered otherwise at one of the gateways. */
  const wrong = async (cookies: Iterable<string>, wanted: number) => {
    const odd = new Set<string>()
    for (const cookie of cookies) {
      for (const gateway of gateways) {
        let status = 503
        await until(
          'the session is judged',
          async () => (status = (await gateway.call(profile, { cookie })).status) !== 503
        )
        if (status !== wanted) odd.add(cookie)
      }
    }
    return odd.size
  }

  for (let n = 0; opened.size < sessions; n++) await signIn(n)
  const closing = [...opened]
  opened.clear()
  const running = { signIns: true }
  const signingIn = (async () => {
    for (let n = 0; running.signIns; n++) {
      await signIn(n)
      await wait(betweenMs)
    }
  })()
  let switching: Promise<unknown> = Promise.resolve()
  for (const [n, cookie] of closing.entries()) {
    // A sixth of the sign-outs come before the switch.
    if (n === Math.floor(sessions / 6)) switching = switchPrimary(sentinel, how)
    await signOut(n, cookie)
    await wait(betweenMs)
  }
  await switching
  running.signIns = false
  await signingIn
  await settledAgain(sentinel, how)

  const [undone, lost] = [await wrong(closing, 401), await wrong(opened, 200)]
  const measured = { how, replicaCount, undone, lost, refused, signIns: opened.size }
  t.comment(`measured ${JSON.stringify(measured)}`)
  t.same(unfit, [], 'every answer is 200 or 503')
  t.equal(undone, 0, 'sign-outs that are undone')
  t.ok(opened.size > 0, 'there were sign-ins')
  t.equal(lost, 0, 'sign-ins that are lost')
}

async function switchPrimary(sentinel: TestSentinel, how: Switch): Promise<void> {
  const [primary] = sentinel.servers
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

/** Only once the old primary follows the new one is everything gone that only the old one had. */
async function settledAgain(sentinel: TestSentinel, how: Switch): Promise<void> {
  const [primary] = sentinel.servers
  if (how === 'killed') await primary.start()
  await until('the old primary is a replica', async () =>
    (await redisCli(primary.port, 'ROLE')).startsWith('slave')
  )
  await sentinel.settled()
}
