import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import type { Sessions } from '../../src/session/sessions.ts'
import { keyOf, signedInOf, userDigest } from '../../src/session/types.ts'
import { testRedis } from '../support/redis.ts'
import { seed } from '../support/seed.ts'
import {
  hour,
  newSession,
  redisStore,
  sessionsOver,
  withMethods,
  look as lookUp
} from '../support/sessions.ts'
import { until } from '../support/until.ts'

const runs = Number(process.env['CHAOS_RUNS'] ?? 15)
const idle = 300
const absolute = 700

type Step =
  | { do: 'open' | 'request' | 'look' | 'close' | 'extend' | 'renew'; id: number; at: number }
  | { do: 'closeUser'; user: string; at: number }
  | { do: 'closeAll'; at: number }

const at = fc.nat(1)
const id = fc.nat(15)
/** An id is only ever made for one user. */
const nameOf = (of: number) => (of % 2 === 0 ? 'u' : 'v')
const uses = ['request', 'request', 'look', 'look', 'close', 'extend', 'renew'] as const
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: fc.record({ do: fc.constant('open' as const), id, at }) },
  { weight: 21, arbitrary: fc.record({ do: fc.constantFrom(...uses), id, at }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('closeUser' as const),
      user: fc.constantFrom('u', 'v'),
      at
    })
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('closeAll' as const), at }) }
)
/** Steps at the same time, or a pause in milliseconds. */
const round = fc.oneof(
  { weight: 30, arbitrary: fc.array(step, { minLength: 1, maxLength: 5, size: 'max' }) },
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 60 }) },
  // Longer than a session may be idle.
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 400 }) }
)
type CleanUp = Parameters<typeof redisStore>[0]

const userOf = (user: string) => signedInOf(newSession(user))

/**
 * What a simple mind expects of a session. Time is real: what cannot be known for sure is not
 * judged, so that a slow machine makes the test look away more often and never fail.
 */
interface Model {
  readonly user: string
  readonly secretId: string
  readonly opened: number
  /** The last use was not before, and not after. */
  used: { from: number; to: number }
  /** Everyone has heard of its end. */
  hasEnded: boolean
  /** Opened or used at the same time as it was to end. */
  isUnsure: boolean
  /** When somebody was first told that it has ended. */
  endedAt: number
}

async function replica(cleanUp: CleanUp, url: string, prefix: string) {
  const { store } = await redisStore(cleanUp, url, prefix)
  const running = new Set<Promise<boolean>>()
  const touch: typeof store.touch = async (...args) => {
    const touched = store.touch(...args)
    running.add(touched)
    return await touched.finally(() => running.delete(touched))
  }
  const remembered = { idle: hour, absolute: hour }
  const config = { idle, absolute, remembered, perUser: { max: 100, over: 'refuse' } } as const
  const sessions = sessionsOver(withMethods(store, { touch }), { config })
  await until('it follows', () => sessions.store.isFollowed())
  return { sessions, running }
}

const judged = { alive: 0, ended: 0, over: 0, unsure: 0 }
/** What is known of a moment is wrong by as much as the slowest call took. */
let slowest = 0
const slack = () => slowest + 20

async function timed<T>(call: Promise<T>): Promise<T> {
  const began = Date.now()
  return await call.finally(() => {
    slowest = Math.max(slowest, Date.now() - began)
  })
}

const isSurelyAlive = ({ hasEnded, isUnsure, used, opened }: Model, at: number) =>
  !hasEnded &&
  !isUnsure &&
  at - used.from < (idle * 3) / 4 - slack() &&
  at - opened < absolute - slack()

const isSurelyOver = ({ used, opened, endedAt }: Model, at: number) =>
  at - used.to > idle + slack() || at - opened > absolute + slack() || at - endedAt > slack()

type Replica = Awaited<ReturnType<typeof replica>>

/** @throws where something contradicts the model */
async function play(both: readonly [Replica, Replica], rounds: ReadonlyArray<Step[] | number>) {
  const model = new Map<number, Model>()
  slowest = 0

  /** @param isAlone nothing else happens to it at the same time */
  async function look(sessions: Sessions, known: Model, isAlone: boolean) {
    const began = Date.now()
    const found = await timed(lookUp(sessions, known.secretId))
    const isAlive = 'live' in found
    const what = `session ${known.secretId} of ${JSON.stringify(known)}`
    if (known.hasEnded) {
      judged.ended++
      if (isAlive) throw new Error(`${what} lives and was ended`)
    } else if (isAlone && isSurelyOver(known, began)) {
      judged.over++
      if (isAlive) throw new Error(`${what} lives and was over`)
    } else if (isAlone && isSurelyAlive(known, Date.now())) {
      judged.alive++
      if (!isAlive) throw new Error(`${what} ended early: ${found.ended}`)
    } else judged.unsure++
    if (!isAlive) known.endedAt = Math.min(known.endedAt, Date.now())
    return isAlive ? found.live : undefined
  }

  async function playRound(steps: readonly Step[]): Promise<void> {
    const before = new Map(model)
    const ending = new Set<Model>()
    const endsMany = (each: Step) => each.do === 'closeAll' || each.do === 'closeUser'
    const isAlone = (id: number) =>
      steps.filter(each => endsMany(each) || ('id' in each && each.id === id)).length === 1

    async function act(step: Step): Promise<void> {
      const { sessions, running } = both[step.at]!
      const began = Date.now()
      if (step.do === 'closeAll' || step.do === 'closeUser') {
        const isHit = ({ user }: Model) => step.do === 'closeAll' || user === step.user
        for (const known of before.values()) if (isHit(known)) ending.add(known)
        if (step.do === 'closeAll') await timed(sessions.store.endAll())
        else await timed(sessions.endOf(userOf(step.user)))
        return
      }
      if (step.do === 'open') {
        // An id is random: none is made twice.
        if (model.has(step.id)) return
        const user = nameOf(step.id)
        const known: Model = {
          user,
          secretId: `${userDigest(userOf(user))}-${step.id}`,
          opened: began,
          used: { from: began, to: Infinity },
          hasEnded: false,
          isUnsure: steps.some(endsMany),
          endedAt: Infinity
        }
        model.set(step.id, known)
        await timed(sessions.open(known.secretId, newSession(user)))
        known.used.to = Date.now()
        return
      }
      const known = before.get(step.id)
      const live = known && (await look(sessions, known, isAlone(step.id)))
      if (known === undefined || live === undefined) return
      if (step.do === 'close') {
        await timed(sessions.end(live, 'revoked'))
        ending.add(known)
      } else if (step.do === 'renew') {
        await timed(sessions.credentials.renew(live, { credential: { token: String(began) } }))
      } else if (step.do !== 'look') {
        if (step.do === 'extend') await timed(sessions.extend(live))
        else sessions.use(live)
        // To know when the use was written.
        await timed(Promise.allSettled(running))
        if (!isSurelyAlive(known, Date.now())) known.isUnsure = true
        known.used = { from: Math.max(known.used.from, began), to: Date.now() }
      }
    }

    await Promise.all(steps.map(act))
    // News come in order: who has heard of this end has heard of all before it.
    const marker = newSession('marker', { remembered: true })
    const secretId = `${userDigest(userOf('marker'))}-${Math.random()}`
    const live = await both[0].sessions.open(secretId, marker)
    for (const { sessions } of both) await lookUp(sessions, secretId)
    await both[0].sessions.end(live, 'revoked')
    await until('all have heard', () =>
      both.every(({ sessions }) => sessions.cached(keyOf(secretId)) === undefined)
    )
    for (const known of ending) known.hasEnded = true
  }

  for (const each of rounds) await (Array.isArray(each) ? playRound(each) : wait(each))
  for (const known of model.values()) {
    for (const { sessions } of both) await look(sessions, known, true)
  }
}

t.test('two replicas and a real Redis: in whatever order, a simple model is right', async t => {
  const { url } = await testRedis(t.after)
  let run = 0
  const rounds = fc.array(round, { minLength: 20, maxLength: 60, size: 'max' })
  const property = fc.asyncProperty(rounds, async played => {
    const prefix = `{run-${++run}}:`
    const undo: Array<() => unknown> = []
    const start = async () => await replica(step => undo.push(step), url, prefix)
    await play([await start(), await start()], played).finally(() => {
      for (const step of undo) step()
    })
  })
  await fc.assert(property, { seed, numRuns: runs, endOnFailure: true })
  t.ok(judged.ended > 0 && judged.over > 0 && judged.alive > 0, JSON.stringify(judged))
})
