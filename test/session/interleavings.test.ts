import fc from 'fast-check'
import t from 'tap'
import { identityKey } from '../../src/session/identity-key.ts'
import { createMemoryStore } from '../../src/session/memory-store.ts'
import { createSeal } from '../../src/session/seal.ts'
import { createSessions, type Sessions } from '../../src/session/session.ts'
import { opening, stepOf, waitOf } from '../support/session-steps.ts'
import { seed } from '../support/seed.ts'

const idle = 10_000
const absolute = 40_000
const seal = createSeal(['a secret of at least thirty-two characters'])

/** What a simple mind expects: a session lives from its opening until the first of closing, idle end and absolute end. */
interface Model {
  user: string
  opened: number
  used: number
  closed: boolean
}

t.test(
  'whatever happens in whatever order on two replicas, sessions live and end as a simple model says',
  async t => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.oneof({ weight: 13, arbitrary: stepOf(6) }, { weight: 4, arbitrary: waitOf(9000) }),
          { minLength: 1, maxLength: 60 }
        ),
        async steps => {
          const clock = { now: 1_000_000 }
          const store = createMemoryStore(() => clock.now)
          // Both hear of every change, as with Redis.
          const followers: Array<Parameters<typeof store.follow>[0]> = []
          store.follow({
            onUp: () => {},
            onDown: () => {},
            onHeartbeat: time => followers.forEach(each => each.onHeartbeat(time)),
            onChanged: key => followers.forEach(each => each.onChanged(key)),
            onEpoch: () => followers.forEach(each => each.onEpoch())
          })
          const replica = (): Sessions =>
            createSessions({
              store: {
                ...store,
                follow: follower => {
                  followers.push(follower)
                  follower.onUp()
                }
              },
              seal,
              lifeTimes: { idle, absolute, remembered: {} },
              perUser: { max: 100, over: 'refuse' },
              maxStalenessMs: 1e9,
              now: () => clock.now
            })
          const replicas = [replica(), replica()]
          const model = new Map<number, Model>()
          const isAlive = (each: Model | undefined) =>
            each !== undefined &&
            !each.closed &&
            clock.now - each.used < idle &&
            clock.now - each.opened < absolute
          // A use is only written down once it is a quarter of the idle time old.
          const mayBeIdle = (each: Model | undefined) =>
            each !== undefined && clock.now - each.used >= idle - idle / 4
          try {
            for (const each of steps) {
              if (each.do === 'wait') clock.now += each.ms
              else if (each.do === 'open') {
                const done = await replicas[each.at]!.open(
                  `id-${each.id}`,
                  opening(each.user)
                ).then(
                  () => true,
                  () => false
                )
                if (done !== !model.has(each.id)) return false
                if (done) {
                  model.set(each.id, {
                    user: each.user,
                    opened: clock.now,
                    used: clock.now,
                    closed: false
                  })
                }
              } else if (each.do === 'closeUser') {
                await replicas[each.at]!.closeOf(identityKey(opening(each.user)))
                for (const one of model.values()) if (one.user === each.user) one.closed = true
              } else if (each.do === 'closeAll') {
                await replicas[each.at]!.closeAll()
                for (const one of model.values()) one.closed = true
              } else {
                const sessions = replicas[each.at]!
                const known = model.get(each.id)
                const resolved = await sessions.get(`id-${each.id}`)
                const live = 'live' in resolved ? resolved.live : undefined
                if (live !== undefined && !isAlive(known)) return false
                if (live === undefined && isAlive(known) && !mayBeIdle(known)) return false
                if (known === undefined) continue
                if (live === undefined) known.closed = true
                else if (each.do === 'request') {
                  sessions.use(live)
                  known.used = clock.now
                } else if (each.do === 'extend') {
                  await sessions.extend(live)
                  known.used = clock.now
                } else if (each.do === 'renew') {
                  await sessions.renew(live, { token: String(clock.now) })
                } else if (each.do === 'close') {
                  await sessions.close(`id-${each.id}`, 'revoked')
                  known.closed = true
                }
              }
            }
            // An id that was used once is never used again, so none of the closed may be back.
            for (const [number, one] of model) {
              for (const sessions of replicas) {
                if (one.closed && 'live' in (await sessions.get(`id-${number}`))) return false
              }
            }
            return true
          } finally {
            await store.close()
          }
        }
      ),
      { numRuns: 400, seed }
    )
    t.pass('400 runs')
  }
)

t.test(
  'requests, touches and closings at the very same time never leave a closed session alive',
  async t => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), async scheduler => {
        const inner = createMemoryStore()
        const slow = <A extends unknown[], T>(name: string, work: (...given: A) => Promise<T>) =>
          scheduler.scheduleFunction(async function scheduled(...given: A) {
            void name
            return await work(...given)
          })
        const store = {
          ...inner,
          read: slow('read', inner.read),
          touch: slow('touch', inner.touch),
          replace: slow('replace', inner.replace),
          end: slow('end', inner.end)
        }
        const sessions = createSessions({
          store,
          seal,
          lifeTimes: { idle: 4, absolute: 1e9, remembered: {} },
          perUser: { max: 9, over: 'refuse' },
          maxStalenessMs: 1e9
        })
        const opened = sessions.open('s', opening('u'))
        await scheduler.waitFor(opened)
        const live = await opened
        const all = Promise.allSettled([
          sessions.extend(live),
          sessions.get('s'),
          sessions.renew(live, { token: 'x' }),
          sessions.close('s', 'revoked'),
          sessions.extend(live),
          sessions.get('s'),
          sessions.renew(live, { token: 'y' })
        ])
        await scheduler.waitFor(all)
        const after = sessions.get('s')
        await scheduler.waitFor(after)
        const alive = 'live' in (await after)
        await inner.close()
        return !alive
      }),
      { numRuns: 200, seed }
    )
    t.pass('200 schedules')
  }
)
