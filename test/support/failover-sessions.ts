/** Sessions that are closed and opened while Sentinel makes another server the primary, and what became of them. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { cookieOf, password, type TestGateway } from './gateway.ts'
import { redisCli } from './redis-cli.ts'
import { testSentinel, type TestSentinel } from './sentinel.ts'
import { profile, replicas } from './trial.ts'
import { until } from './until.ts'

export type Switch = 'planned' | 'killed'

interface SwitchOutcome {
  readonly signOuts: number
  /** Closed sessions, their sign-out acknowledged, that are not 401 afterwards. */
  readonly undone: number
  readonly refusedSignOuts: number
  readonly signIns: number
  /** Sessions whose sign-in was acknowledged that are not 200 afterwards. */
  readonly lost: number
  readonly refusedSignIns: number
  /** Statuses other than 200 and 503. */
  readonly unfit: readonly string[]
}

/** That no acknowledged sign-out is undone, and no acknowledged sign-in is lost. */
export async function keepsAcknowledged(t: Test, how: Switch, replicaCount: number) {
  const outcome = await sessionsInSwitch(t, how, replicaCount)
  t.comment(`measured ${JSON.stringify({ how, replicaCount, ...outcome })}`)
  t.same(outcome.unfit, [], 'every answer is 200 or 503')
  t.equal(outcome.signOuts, 60, 'all sign-outs were acknowledged in the end')
  t.equal(outcome.undone, 0, 'sign-outs that are undone')
  t.ok(outcome.signIns > 0, 'there were sign-ins')
  t.equal(outcome.lost, 0, 'sign-ins that are lost')
}

const sessions = 60
const betweenMs = 60

/** Closes 60 sessions one after the other, and opens others meanwhile, from before the switch until after it. */
async function sessionsInSwitch(
  t: Test,
  how: Switch,
  replicaCount: number
): Promise<SwitchOutcome> {
  const sentinel = await testSentinel(t.after, [], replicaCount)
  const gateways = await replicas(t, { sentinels: sentinel.sentinels, primary: sentinel.name })
  const at = (n: number) => gateways[n % 2] as TestGateway
  const unfit: string[] = []
  const opened = new Set<string>()
  let refusedSignIns = 0

  async function signIn(n: number): Promise<void> {
    const answer = await at(n).call('/api/auth/admin/login', {
      json: { username: 'alice', password }
    })
    if (answer.status === 200) opened.add(cookieOf(answer))
    else if (answer.status === 503) refusedSignIns++
    else unfit.push(`sign-in ${answer.status} ${answer.text}`)
  }

  for (let n = 0; opened.size < sessions; n++) await signIn(n)
  refusedSignIns = 0
  const closing = [...opened]
  opened.clear()

  const running = { signIns: true }
  const signingIn = (async () => {
    for (let n = 0; running.signIns; n++) {
      await signIn(n)
      await wait(betweenMs)
    }
  })()
  const { closed, refused } = await signOutDuring(closing, at, unfit, startOf(sentinel, how))
  running.signIns = false
  await signingIn
  await settledAgain(sentinel, how)

  const statusOf = async (cookie: string, n: number) => {
    let status = 503
    await until(
      'the session is judged',
      async () => (status = (await at(n).call(profile, { cookie })).status) !== 503
    )
    return status
  }
  const judge = async (cookies: readonly string[], wanted: number) => {
    let wrong = 0
    for (const cookie of cookies) {
      const statuses = [await statusOf(cookie, 0), await statusOf(cookie, 1)]
      if (statuses.some(status => status !== wanted)) wrong++
    }
    return wrong
  }
  return {
    signOuts: closed.length,
    undone: await judge(closed, 401),
    refusedSignOuts: refused,
    signIns: opened.size,
    lost: await judge([...opened], 200),
    refusedSignIns,
    unfit
  }
}

/** A sixth of the sign-outs come before the switch; one that is refused is tried again until it is acknowledged. */
async function signOutDuring(
  cookies: readonly string[],
  at: (n: number) => TestGateway,
  unfit: string[],
  startSwitch: () => Promise<unknown>
): Promise<{ readonly closed: readonly string[]; readonly refused: number }> {
  const closed: string[] = []
  let refused = 0
  let switching: Promise<unknown> = Promise.resolve()
  for (const [n, cookie] of cookies.entries()) {
    if (n === Math.floor(cookies.length / 6)) switching = startSwitch()
    await until('a sign-out is acknowledged', async () => {
      const answer = await at(n).call('/api/account/logout', { cookie, method: 'POST' })
      if (answer.status === 503) refused++
      else if (answer.status !== 200) unfit.push(`sign-out ${answer.status} ${answer.text}`)
      return answer.status !== 503
    })
    closed.push(cookie)
    await wait(betweenMs)
  }
  await switching
  return { closed, refused }
}

function startOf(sentinel: TestSentinel, how: Switch): () => Promise<unknown> {
  const [primary] = sentinel.servers
  return async () => {
    if (how === 'planned') {
      await sentinel.failover()
    } else {
      await primary.kill()
      await sentinel.downAfter(500)
    }
    await until(
      'another server is primary',
      async () => (await sentinel.primaryPort()) !== primary.port
    )
  }
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
