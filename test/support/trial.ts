/** What people see of two replicas while something happens to their Redis: traffic of all kinds, who is signed in by the book, and a verdict. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import { createJudge, type Session } from './judge.ts'
import { until } from './until.ts'
import {
  type Called,
  configFolder,
  cookieOf,
  password,
  testGateway,
  type TestGateway
} from './gateway.ts'

const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
export const profile = '/api/account/profile'
const logout = '/api/account/logout'

/**
 * A gateway that may not have reached its Redis yet.
 * @param redis the `redis` section of gateway.yaml
 */
export async function starting(
  t: Test,
  redis: Record<string, unknown>,
  given: Record<string, string> = {}
): Promise<TestGateway> {
  return await testGateway(
    t.after,
    await configFolder({
      gateway: { redis, session: { secrets: ['${SESSION_SECRET}'], perUser: { max: 1000 } } }
    }),
    { ...environment, ...given }
  )
}

/** A gateway that is ready. */
export async function replica(
  t: Test,
  redis: Record<string, unknown>,
  given: Record<string, string> = {}
): Promise<TestGateway> {
  const gateway = await starting(t, redis, given)
  await until('ready', async () => (await gateway.ops('/readyz')).status === 200)
  return gateway
}

export const replicas = async (
  t: Test,
  redis: Record<string, unknown>,
  given: Record<string, string> = {}
): Promise<[TestGateway, TestGateway]> => [
  await replica(t, redis, given),
  await replica(t, redis, given)
]

type Phase = 'before' | 'during' | 'healing' | 'after'

interface Expectations {
  /** What this is, for the report. */
  readonly name: string
  /** Redis forgets everything: sessions from before are 401 afterwards. */
  readonly forgets?: boolean
}

/** Bounds that no machine is too busy for: they tell what is late from what never comes. How long it took is reported. */
const answeredWithinMs = 20_000
const normalWithinMs = 60_000

export interface Trial {
  /** What happens to Redis; traffic runs. */
  readonly during: (fault: () => Promise<unknown>) => Promise<void>
  /** What ends it, unless it heals by itself. Then waits until all works again, and judges. */
  readonly over: (end?: () => Promise<unknown>) => Promise<void>
  /** Resolves once requests of a kind have been answered so. */
  readonly saw: (kind: string, status: number) => Promise<void>
  readonly statuses: (phase: Phase) => Record<string, Record<string, number>>
}

/** Starts the traffic: at each replica one who uses old sessions, and one who signs in here, looks there, and signs out there. */
export async function startTrial(
  t: Test,
  [a, b]: readonly [TestGateway, TestGateway],
  { name, forgets = false }: Expectations
): Promise<Trial> {
  const seen: Record<Phase, Record<string, Record<string, number>>> = {
    before: {},
    during: {},
    healing: {},
    after: {}
  }
  const judge = createJudge()
  let phase: Phase = 'before'
  const loop = { running: true }
  let slowestMs = 0
  let faultAt = 0

  async function ask(
    kind: string,
    gateway: TestGateway,
    path: string,
    options: Parameters<TestGateway['call']>[1]
  ): Promise<Called | undefined> {
    const at = phase
    const began = performance.now()
    const answer = await Promise.race([
      gateway.call(path, options).catch((error: unknown) => {
        judge.odd(`${kind}: ${String(error)}`)
        return undefined
      }),
      wait(answeredWithinMs, undefined, { ref: false })
    ])
    slowestMs = Math.max(slowestMs, performance.now() - began)
    const counts = (seen[at][kind] ??= {})
    const status = String(answer?.status ?? 'none')
    counts[status] = (counts[status] ?? 0) + 1
    if (answer === undefined) judge.odd(`${kind} got no answer within ${answeredWithinMs} ms`)
    else if (![200, 401, 503].includes(answer.status)) {
      judge.odd(`${kind}: ${answer.status} ${answer.text}`)
    } else if (
      answer.status === 503 &&
      (answer.json?.errorCode !== 'session.unavailable' || answer.headers.getSetCookie().length > 0)
    ) {
      judge.odd(`${kind}: an unfit 503: ${answer.text} ${answer.headers.getSetCookie().join()}`)
    }
    return answer
  }

  async function use(gateway: TestGateway, session: Session): Promise<number> {
    const { state, cookie } = session
    const began = performance.now()
    const kind = state === 'alive' ? 'profile' : 'profile of the signed-out'
    const answer = await ask(kind, gateway, profile, { cookie })
    const status = answer?.status ?? 0
    const mayBeLost = forgets && phase !== 'before' && status === 401
    if (!mayBeLost) judge.used(session, state, began, { status, text: answer?.text ?? '' })
    return status
  }

  async function signIn(gateway: TestGateway): Promise<Session | undefined> {
    const json = { username: 'alice', password }
    const answer = await ask('sign-in', gateway, '/api/auth/admin/login', { json })
    if (answer?.status === 401) judge.odd('a sign-in was refused')
    return answer?.status === 200 ? judge.opened('alice', cookieOf(answer)) : undefined
  }

  async function signOut(gateway: TestGateway, session: Session): Promise<number> {
    judge.closing([session])
    const { cookie } = session
    const answer = await ask('sign-out', gateway, logout, { cookie, method: 'POST' })
    if (answer?.status === 200) judge.closed([session])
    return answer?.status ?? 0
  }

  /** One round of everything; whether all of it worked. */
  async function round(here: TestGateway, there: TestGateway): Promise<boolean> {
    const session = await signIn(here)
    if (session === undefined) return false
    const used = [await use(here, session), await use(there, session)]
    const out = await signOut(there, session)
    const after = out === 200 ? [await use(there, session), await use(here, session)] : []
    return (
      used.every(status => status === 200) && out === 200 && after.every(status => status === 401)
    )
  }

  const kept: Session[] = []
  for (const gateway of [a, b, a]) {
    await until('one signs in', async () => {
      const session = await signIn(gateway)
      if (session !== undefined) kept.push(session)
      return session !== undefined
    })
  }
  const old = [...kept]
  await until('one signs in and out', async () => {
    const gone = await signIn(b)
    if (gone !== undefined) old[kept.length] = gone
    return gone !== undefined && (await signOut(a, gone)) === 200
  })

  const loops = [a, b].flatMap(gateway => [
    (async () => {
      for (let n = 0; loop.running; n++) {
        const session = old[n % old.length]
        if (session !== undefined) await use(gateway, session)
        await wait(5)
      }
    })(),
    (async () => {
      while (loop.running) {
        if (phase === 'during' || phase === 'healing') await round(gateway, gateway === a ? b : a)
        await wait(20)
      }
    })()
  ])
  t.teardown(() => {
    loop.running = false
  })
  await until('it works before the fault', async () => (await round(a, b)) && (await round(b, a)))

  /** Every session at both, once it is surely known how it stands. */
  async function recount(): Promise<void> {
    for (const session of judge.sessions()) {
      for (const gateway of [a, b]) {
        let status = 0
        // On a busy machine even a sound Redis can be late once; then it has not been said yet.
        await until(
          'it is surely known who is signed in',
          async () => (status = await use(gateway, session)) !== 503
        )
        if (session.state === 'closed' && status !== 401) {
          judge.odd(`a closed session lives: ${status}`)
        }
      }
    }
  }

  return {
    statuses: at => seen[at],
    saw: async (kind, status) => {
      await until(`${kind} is answered ${status}`, () => (seen[phase][kind]?.[status] ?? 0) > 0)
    },
    during: async fault => {
      faultAt = performance.now()
      phase = 'during'
      await fault()
    },
    over: async end => {
      if (end !== undefined) {
        await end()
        faultAt = performance.now()
        phase = 'healing'
      }
      let began = 0
      let fine = false
      while (!fine && performance.now() - faultAt < normalWithinMs) {
        began = performance.now()
        const used = await Promise.all(
          [a, b].flatMap(gateway => kept.map(async session => await use(gateway, session)))
        )
        fine =
          used.every(status => status === (forgets ? 401 : 200)) &&
          (await round(a, b)) &&
          (await round(b, a))
        if (!fine) await wait(20)
      }
      phase = 'after'
      loop.running = false
      await Promise.all(loops)
      await recount()
      t.ok(fine, `${name}: works again`)
      t.same(judge.problems, [], `${name}: only what is allowed was seen`)
      const times = [began - faultAt, slowestMs, judge.stalestMs()].map(Math.round)
      const [normalAfterMs, longestMs, stalestMs] = times
      const measured = { ...seen, normalAfterMs, longestMs, stalestMs }
      t.comment(`${name}: measured ${JSON.stringify(measured)}`)
    }
  }
}
