/** What people see of two replicas while something happens to their Redis: traffic of all kinds, who is signed in by the book, and a verdict. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Test } from 'tap'
import type { Answer } from './call.ts'
import { type Files, testGateway, type TestGateway } from './gateway.ts'
import { createJudge, judgedUsers, type Session } from './judge.ts'
import { again, until } from './until.ts'

export { profile } from './judge.ts'

/**
 * A gateway that is ready.
 * @param redis the `redis` section of gateway.yaml
 */
export async function replica(
  t: Test,
  redis: Record<string, unknown>,
  environment: Record<string, string> = {},
  users?: Files['users']
): Promise<TestGateway> {
  const gateway = await testGateway(t.after, { redis, ...(users && { users }) }, environment)
  await gateway.ready()
  return gateway
}

export const replicas = async (
  ...given: Parameters<typeof replica>
): Promise<[TestGateway, TestGateway]> => [await replica(...given), await replica(...given)]

type Phase = 'before' | 'during' | 'healing' | 'after'

/** A bound that no machine is too busy for: it tells what is late from what never comes. */
const normalWithinMs = 60_000

const isFit = ({ status, headers, json }: Answer) =>
  status === 503
    ? json?.errorCode === 'session.unavailable' && headers['set-cookie'] === undefined
    : status !== 429

export type Trial = Awaited<ReturnType<typeof startTrial>>

/**
 * Starts the traffic: at each replica one who uses old sessions, and one who signs in here, looks
 * there, and signs out there. Where Redis `forgets`, sessions from before are 401 afterwards.
 */
export async function startTrial(
  t: Test,
  [a, b]: readonly [TestGateway, TestGateway],
  { name, forgets = false }: { readonly name: string; readonly forgets?: boolean }
) {
  type Counts = Record<string, Record<string, number>>
  const seen: Record<Phase, Counts> = { before: {}, during: {}, healing: {}, after: {} }
  const judge = createJudge()
  let phase: Phase = 'before'
  let faultAt = 0
  const { use, signIn, signOut, recount } = judgedUsers({
    judge,
    isFit,
    isForgotten: () => forgets && phase !== 'before',
    count: (what, status) => {
      const counts = (seen[phase][what] ??= {})
      counts[status] = (counts[status] ?? 0) + 1
    }
  })

  /** One round of everything; whether all of it worked. */
  async function round(here: TestGateway, there: TestGateway): Promise<boolean> {
    const session = await signIn('alice', here)
    if (session === undefined) return false
    const used = [await use(session, here), await use(session, there)]
    if (!(await signOut(session, there))) return false
    const after = [await use(session, there), await use(session, here)]
    return used.every(status => status === 200) && after.every(status => status === 401)
  }

  async function open(at: TestGateway): Promise<Session> {
    let session: Session | undefined
    await until('one signs in', async () => (session = await signIn('alice', at)) !== undefined)
    return session as Session
  }

  const kept = [await open(a), await open(b), await open(a)]
  const gone = await open(b)
  await until('one signs out', async () => await signOut(gone, a))
  const old = [...kept, gone]

  const ends = [a, b].flatMap(gateway => {
    let turn = 0
    const useOld = async () => {
      await use(old[turn++ % old.length] as Session, gateway)
      await wait(5)
    }
    const useNew = async () => {
      if (phase === 'during' || phase === 'healing') await round(gateway, gateway === a ? b : a)
      await wait(20)
    }
    return [again(useOld), again(useNew)]
  })
  const end = async () => void (await Promise.all(ends.map(each => each())))
  t.teardown(end)
  const bothWork = async () => (await round(a, b)) && (await round(b, a))
  await until('it works before the fault', bothWork)

  async function allWorks(): Promise<boolean> {
    const used = await Promise.all(
      [a, b].flatMap(gateway => kept.map(async session => await use(session, gateway)))
    )
    return used.every(status => status === (forgets ? 401 : 200)) && (await bothWork())
  }

  return {
    statuses: (at: Phase) => seen[at],
    /** Resolves once requests of a kind have been answered so. */
    saw: async (kind: string, status: number) => {
      await until(`${kind} is answered ${status}`, () => (seen[phase][kind]?.[status] ?? 0) > 0)
    },
    /** What happens to Redis; traffic runs. */
    during: async (fault: () => Promise<unknown>) => {
      faultAt = performance.now()
      phase = 'during'
      await fault()
    },
    /** What ends it, unless it heals by itself. Then waits until all works again, and judges. */
    over: async (mend?: () => Promise<unknown>) => {
      if (mend !== undefined) {
        await mend()
        faultAt = performance.now()
        phase = 'healing'
      }
      await until(`${name}: all works again`, allWorks, normalWithinMs)
      const normalAfterMs = Math.round(performance.now() - faultAt)
      phase = 'after'
      await end()
      await recount([a, b])
      t.same(judge.problems, [], `${name}: only what is allowed was seen`)
      const measured = { ...seen, normalAfterMs, stalestMs: judge.stalestMs() }
      t.comment(`${name}: measured ${JSON.stringify(measured)}`)
    }
  }
}
