/** How long a confirmed sign-out is alive at another process during a failover. */
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { lose } from '../../support/failover.ts'
import { configFolder } from '../../support/gateway.ts'
import { type GatewayProcess, startGatewayProcess } from '../../support/gateway-process.ts'
import { standstill } from '../../support/machine.ts'
import { testSentinel, type TestSentinel } from '../../support/sentinel.ts'
import { profile } from '../../support/trial.ts'
import { again, until } from '../../support/until.ts'

/** More runs, and another time until Sentinels call a primary down: FAILOVER_RUNS=5 DOWN_AFTER_MS=30000. */
const runs = Number(process.env['FAILOVER_RUNS'] ?? 1)
const downAfterMs = Number(process.env['DOWN_AFTER_MS'] ?? 2000)
const sessionCount = 900
const watchedMs = 5000

async function processOf(t: Test, sentinels: readonly string[], primary: string) {
  const folder = await configFolder({ redis: { sentinels, primary } })
  const gateway = await startGatewayProcess(t.after, folder)
  await gateway.ready()
  return gateway
}

/** Sessions that both processes have in their caches. */
async function sessionsAt(both: readonly [GatewayProcess, GatewayProcess]): Promise<string[]> {
  const cookies: string[] = []
  while (cookies.length < sessionCount) {
    const cookie = await both[cookies.length % 2]!.signIn()
    // A busy machine may answer 503 first.
    await until('both have it in use', async () => {
      const used = await Promise.all(both.map(({ status }) => status(profile, { cookie })))
      return used.every(status => status === 200)
    })
    cookies.push(cookie)
  }
  return cookies
}

/**
 * Signs out at A every 20 ms, and asks B for each session whose sign-out is confirmed: until it is
 * refused, and again for 5 s, for B may follow to a server that does not know of it yet.
 */
function startSignOuts(a: GatewayProcess, b: GatewayProcess, cookies: string[]) {
  const closed: Array<{ readonly cookie: string; readonly at: number }> = []
  let longestMs = 0
  const askB = async ({ cookie, at }: (typeof closed)[number]) => {
    const status = await b.status(profile, { cookie })
    if (status === 200) longestMs = Math.max(longestMs, Math.round(performance.now() - at))
    return status
  }
  const signOut = async (cookie: string) => {
    const options = { method: 'POST', cookie }
    const { status } = await a.call('/api/account/logout', options)
    if (status !== 200) return void cookies.push(cookie)
    const session = { cookie, at: performance.now() }
    closed.push(session)
    await until('it is refused at B', async () => (await askB(session)) === 401)
  }
  const all: Array<Promise<unknown>> = []
  const sign = async () => {
    const cookie = cookies.shift()
    if (cookie !== undefined) all.push(signOut(cookie))
    await wait(20)
  }
  const watch = async () => {
    const recent = closed.filter(({ at }) => performance.now() - at < watchedMs)
    for (const session of recent) await askB(session)
    await wait(10)
  }
  const ends = [sign, watch, watch, watch].map(again)
  return async () => {
    await Promise.all(ends.map(end => end()))
    await Promise.all(all)
    return { confirmed: closed.length, left: cookies.length, longestMs }
  }
}

interface Cause {
  readonly begin: (sentinel: TestSentinel, run: number) => Promise<unknown>
  /** About twice the longest of five runs; what was 0 there has a second. */
  readonly boundMs: number
}

const causes: Record<string, Cause> = {
  'planned': { begin: ({ failover }, run) => failover(run % 3), boundMs: 2000 },
  'killed': { begin: ({ servers: [primary] }) => lose(primary, 'killed'), boundMs: 1000 },
  'frozen': { begin: ({ servers: [primary] }) => lose(primary, 'frozen'), boundMs: 1000 },
  'killed, its replica half a second behind': {
    begin: async ({ servers: [primary, heir] }) => {
      heir.signal('SIGSTOP')
      await primary.cli('CLIENT', 'KILL', 'TYPE', 'replica')
      await wait(500)
      await lose(primary, 'killed')
      heir.signal('SIGCONT')
    },
    boundMs: downAfterMs + 4000
  }
}

for (const [cause, { begin, boundMs }] of Object.entries(causes)) {
  for (let run = 1; run <= runs; run++) {
    t.test(`${cause}, run ${run}: a confirmed sign-out is soon one elsewhere`, async t => {
      const sentinel = await testSentinel(t.after)
      const [primary, heir] = sentinel.servers
      // They ask the Sentinels in different orders.
      const a = await processOf(t, sentinel.sentinels, sentinel.name)
      const b = await processOf(t, sentinel.sentinels.toReversed(), sentinel.name)
      const cookies = await sessionsAt([a, b])
      await sentinel.downAfter(downAfterMs)
      const stoodStillMs = standstill()
      const end = startSignOuts(a, b, cookies)
      t.after(end)
      await wait(500)
      await begin(sentinel, run)
      await until(
        'another server is primary',
        async () => (await sentinel.primaryPort()) === heir.port,
        downAfterMs + 60_000
      )
      // Not before all Sentinels tell of the new one: it has nothing, and calls itself a primary.
      await wait(3000)
      if (cause.startsWith('killed')) await primary.start()
      if (cause === 'frozen') primary.signal('SIGCONT')
      await until('the old primary follows', async () =>
        (await primary.cli('ROLE')).startsWith('slave')
      )
      await wait(1000)
      const measured = await end()
      t.comment(`measured ${JSON.stringify({ cause, downAfterMs, ...measured })}`)
      t.ok(measured.left > 0 && measured.confirmed > 50, 'there were sign-outs all the time')
      t.ok(measured.longestMs < boundMs + stoodStillMs(), `${measured.longestMs} ms`)
    })
  }
}
