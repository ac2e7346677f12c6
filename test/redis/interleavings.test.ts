import { randomInt } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import fc from 'fast-check'
import t, { type Test } from 'tap'
import { createRedisDialler } from '../../src/services/redis.ts'
import { followRedis } from '../../src/session/redis-invalidation.ts'
import { createRedisStore } from '../../src/session/redis-store.ts'
import { identityKey } from '../../src/session/identity-key.ts'
import { createSeal } from '../../src/session/seal.ts'
import { createSessions, type Sessions } from '../../src/session/session.ts'
import type { SessionStore } from '../../src/session/store.ts'
import { redisConfig } from '../support/config.ts'
import { testRedis } from '../support/redis.ts'
import { opening, type Step, stepOf, waitOf } from '../support/session-steps.ts'

const seed = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31))
const runs = Number(process.env['CHAOS_RUNS'] ?? 15)
console.error(`CHAOS_SEED=${seed} CHAOS_RUNS=${runs}`)
const idle = 300
const absolute = 700
const round = fc.oneof(
  { weight: 30, arbitrary: fc.array(stepOf(16), { minLength: 1, maxLength: 5, size: 'max' }) },
  { weight: 6, arbitrary: waitOf(60) },
  // Longer than a session may be idle.
  { weight: 2, arbitrary: waitOf(400) }
)
const seal = createSeal(['a secret of at least thirty-two characters'])

/**
 * What a simple mind expects of a session. Time is real here: what cannot be known for sure is not judged,
 * so that a slow machine makes the test look away more often and never fail.
 */
interface Model {
  readonly user: string
  readonly opened: number
  /** The last use was not before, and not after. */
  used: { from: number; to: number }
  /** Everyone has heard of its end. */
  closed: boolean
  /** It may have ended: opened or used at the same time as it was to end. */
  unsure: boolean
  /** When somebody was first told that it has ended. */
  endedAt: number
}

/** One replica: sessions over a real Redis, and what it has heard of. */
async function replica(t: Test, url: string) {
  const dialler = createRedisDialler(redisConfig({ url }), '.')
  const up = Promise.withResolvers<void>()
  const client = dialler.client({ onUp: up.resolve, onDown: () => {} })
  t.after(() => client.disconnect())
  await up.promise
  return async (prefix: string) => {
    let end = () => {}
    const awaited = new Map<string, () => void>()
    const following = Promise.withResolvers<void>()
    const running = new Set<Promise<boolean>>()
    const redis = createRedisStore({
      redis: client,
      prefix,
      follow: (follower, names) => {
        const told = {
          ...follower,
          onUp: () => {
            follower.onUp()
            following.resolve()
          },
          onChanged: (key: string) => {
            follower.onChanged(key)
            awaited.get(key)?.()
          }
        }
        end = followRedis({
          dial: () => dialler.trackingConnections(client),
          onTopology: () => {},
          follower: told,
          names,
          maxStalenessMs: 20_000
        })
      }
    })
    const store: SessionStore = {
      ...redis,
      touch: (...given) => {
        const touched = redis.touch(...given)
        running.add(touched)
        return touched
      }
    }
    const sessions = createSessions({
      store,
      seal,
      lifeTimes: { idle, absolute, remembered: {} },
      perUser: { max: 100, over: 'refuse' },
      maxStalenessMs: 20_000
    })
    await following.promise
    return {
      sessions,
      store,
      running,
      end: () => end(),
      hears: (key: string) =>
        new Promise<void>(resolve => {
          awaited.set(key, resolve)
        })
    }
  }
}

t.test(
  `two replicas and a real Redis: whatever happens in whatever order, also at the same time, sessions live and end as a simple model says (seed ${seed}, ${runs} runs)`,
  async t => {
    const { url } = await testRedis(t.after)
    const start = [await replica(t, url), await replica(t, url)] as const
    let run = 0
    const judged = { alive: 0, closed: 0, over: 0, unsure: 0 }

    await fc.assert(
      fc.asyncProperty(
        fc.array(round, { minLength: 20, maxLength: 60, size: 'max' }),
        async rounds => {
          const prefix = `run-${++run}:`
          const both = [await start[0](prefix), await start[1](prefix)] as const
          const model = new Map<number, Model>()
          const wrong: string[] = []
          let slowest = 0
          let markers = 0
          /** What is known of a moment is wrong by as much as the slowest call took. */
          const slack = () => slowest + 20
          async function timed<T>(call: Promise<T>): Promise<T> {
            const began = Date.now()
            return await call.finally(() => {
              slowest = Math.max(slowest, Date.now() - began)
            })
          }
          const surelyAlive = (known: Model, until: number) =>
            !known.closed &&
            !known.unsure &&
            until - known.used.from < (idle * 3) / 4 - slack() &&
            until - known.opened < absolute - slack()
          const surelyOver = (known: Model, from: number) =>
            from - known.used.to > idle + slack() ||
            from - known.opened > absolute + slack() ||
            from - known.endedAt > slack()

          /** @param alone nothing else happens to it at the same time */
          async function resolve(sessions: Sessions, id: number, alone: boolean) {
            const known = model.get(id)
            const began = Date.now()
            const resolved = await timed(sessions.get(`id-${id}`))
            const live = 'live' in resolved ? resolved.live : undefined
            if (known === undefined) {
              if (live !== undefined && alone) wrong.push(`${id} lives and was never opened`)
              return
            }
            if (known.closed) {
              judged.closed++
              if (live !== undefined) wrong.push(`${id} lives and was closed`)
            } else if (alone && surelyOver(known, began)) {
              judged.over++
              if (live !== undefined) wrong.push(`${id} lives and was over`)
            } else if (alone && surelyAlive(known, Date.now())) {
              judged.alive++
              if (live === undefined) wrong.push(`${id} ended early: ${JSON.stringify(resolved)}`)
            } else judged.unsure++
            if (live === undefined) known.endedAt = Math.min(known.endedAt, Date.now())
            return live === undefined ? undefined : { live, known, began }
          }

          async function runRound(round: readonly Step[]): Promise<void> {
            const closing = new Set<Model>()
            const before = new Set(model.keys())
            const opened = new Map<number, boolean>()
            const ends = (one: Step) => one.do === 'closeAll' || one.do === 'closeUser'
            const alone = (id: number) =>
              round.filter(one => ends(one) || ('id' in one && one.id === id)).length === 1

            async function act(each: Step): Promise<void> {
              const { sessions, running } = both[each.at]!
              const began = Date.now()
              if (each.do === 'open') {
                const done = await timed(
                  sessions.open(`id-${each.id}`, opening(each.user)).then(
                    () => true,
                    () => false
                  )
                )
                if (done && model.has(each.id)) wrong.push(`${each.id} was opened twice`)
                opened.set(each.id, done || opened.get(each.id) === true)
                if (done) {
                  model.set(each.id, {
                    user: each.user,
                    opened: began,
                    used: { from: began, to: Date.now() },
                    closed: false,
                    unsure: round.some(ends),
                    endedAt: Infinity
                  })
                }
              } else if (each.do === 'closeUser' || each.do === 'closeAll') {
                for (const known of model.values()) {
                  if (each.do === 'closeAll' || known.user === each.user) closing.add(known)
                }
                await timed<unknown>(
                  each.do === 'closeAll'
                    ? sessions.closeAll()
                    : sessions.closeOf(identityKey(opening(each.user)))
                )
              } else {
                const found = await resolve(sessions, each.id, alone(each.id))
                if (found === undefined) return
                const { live, known, began } = found
                if (each.do === 'close') {
                  await timed(sessions.close(`id-${each.id}`, 'revoked'))
                  closing.add(known)
                } else if (each.do === 'renew') {
                  await timed(sessions.renew(live, { token: String(began) }))
                } else if (each.do !== 'look') {
                  if (each.do === 'extend') await timed(sessions.extend(live))
                  else sessions.use(live)
                  // The engine does not wait until a use is written down; the test does, to know when that was.
                  await timed(Promise.allSettled([...running]))
                  if (!surelyAlive(known, Date.now())) known.unsure = true
                  known.used = { from: Math.max(known.used.from, began), to: Date.now() }
                }
              }
            }

            await Promise.all(round.map(act))
            for (const [id, done] of opened) {
              if (done === before.has(id)) {
                wrong.push(done ? `${id} was opened again` : `${id} could not be opened`)
              }
            }
            // News come in order: whoever has heard of this has heard of all before it.
            const marker = `marker-${++markers}`
            const heard = both.map(one => one.hears(marker))
            await both[0].store.create(marker, '{}', 600_000)
            await Promise.all(heard)
            for (const known of closing) known.closed = true
          }

          try {
            for (const round of rounds) {
              if (Array.isArray(round)) await runRound(round)
              else await wait(round.ms)
            }
            for (const id of model.keys()) {
              for (const { sessions } of both) await resolve(sessions, id, true)
            }
            if (wrong.length > 0) throw new Error(wrong.join('; '))
          } finally {
            for (const { end } of both) end()
          }
        }
      ),
      { seed, numRuns: runs, endOnFailure: true }
    )
    t.ok(judged.closed > 0, 'some were closed')
    t.comment(JSON.stringify(judged))
  }
)
