import fc from 'fast-check'
import t from 'tap'
import { MemoryStore } from '../../src/session/memory-store.ts'
import { signedInOf, userDigest } from '../../src/session/types.ts'
import { seed } from '../support/seed.ts'
import { type Step, stepOf, type Wait, waitOf } from '../support/session-steps.ts'
import {
  newSession,
  sessionsOver,
  sharedMemory,
  signIn,
  withMethods,
  look
} from '../support/sessions.ts'

const lifeTimes = { idle: 10_000, absolute: 40_000, remembered: {} }
const perUser = { max: 100, over: 'refuse' } as const
const userOf = (user: string) => signedInOf(newSession(user))

/** What a simple mind expects: a session lives from its opening to its end by whichever cause. */
interface Model {
  readonly user: string
  readonly secretId: string
  readonly opened: number
  used: number
  hasEnded: boolean
}

/** @returns what contradicts the model */
async function play(steps: ReadonlyArray<Step | Wait>): Promise<string | undefined> {
  const { clock, replica } = sharedMemory()
  const replicas = [replica({ lifeTimes, perUser }), replica({ lifeTimes, perUser })] as const
  const model = new Map<number, Model>()
  const isAlive = ({ hasEnded, used, opened }: Model) =>
    !hasEnded && clock.now - used < lifeTimes.idle && clock.now - opened < lifeTimes.absolute
  // Use is only written once it is a quarter of the idle time old.
  const mayBeIdle = ({ used }: Model) => clock.now - used >= (lifeTimes.idle * 3) / 4
  const endAll = (user?: string) => {
    for (const each of model.values()) each.hasEnded ||= user === undefined || each.user === user
  }

  async function act(step: Step): Promise<string | undefined> {
    const sessions = replicas[step.at]!
    if (step.do === 'closeUser') {
      await sessions.endOf(userOf(step.user))
      return endAll(step.user) as undefined
    }
    if (step.do === 'closeAll') {
      await sessions.store.endAll()
      return endAll() as undefined
    }
    const known = model.get(step.id)
    if (step.do === 'open') {
      // An id is random: none is made twice.
      if (known !== undefined) return
      const secretId = `${userDigest(userOf(step.user))}-${step.id}`
      await sessions.open(secretId, newSession(step.user))
      const times = { opened: clock.now, used: clock.now }
      model.set(step.id, { user: step.user, secretId, ...times, hasEnded: false })
      return
    }
    if (known === undefined) return
    const found = await look(sessions, known.secretId)
    if (!('live' in found)) {
      if (isAlive(known) && !mayBeIdle(known)) return `${step.id} ended early: ${found.ended}`
      known.hasEnded = true
      return
    }
    if (!isAlive(known)) return `${step.id} lives and has ended`
    const { live } = found
    if (step.do === 'request') sessions.use(live)
    if (step.do === 'extend') await sessions.extend(live)
    if (step.do === 'request' || step.do === 'extend') known.used = clock.now
    if (step.do === 'renew') await sessions.credentials.renew(live, { token: String(clock.now) })
    if (step.do === 'close') known.hasEnded = await sessions.end(live, 'revoked')
    return
  }

  for (const step of steps) {
    if (step.do === 'wait') {
      clock.now += step.ms
      continue
    }
    const fault = await act(step)
    if (fault !== undefined) return fault
  }
  for (const [id, { hasEnded, secretId }] of model) {
    const found = await Promise.all(replicas.map(async each => await look(each, secretId)))
    if (hasEnded && found.some(each => 'live' in each)) return `${id} is back`
  }
  return undefined
}

t.test('whatever happens in whatever order on two replicas is as a simple model says', async t => {
  const step = fc.oneof(
    { weight: 13, arbitrary: stepOf(6) },
    { weight: 4, arbitrary: waitOf(9000) }
  )
  const steps = fc.array(step, { minLength: 1, maxLength: 60 })
  const property = fc.asyncProperty(steps, async played => {
    const fault = await play(played)
    if (fault !== undefined) throw new Error(fault)
  })
  await fc.assert(property, { numRuns: 400, seed })
  t.pass('400 runs')
})

t.test('requests, touches and ends at the very same time leave no ended session alive', async t => {
  const property = fc.asyncProperty(fc.scheduler(), async scheduler => {
    const inner = new MemoryStore()
    const slow = <A extends unknown[], T>(work: (...args: A) => Promise<T>) =>
      scheduler.scheduleFunction(work.bind(inner))
    const store = withMethods(inner, {
      read: slow(inner.read),
      touch: slow(inner.touch),
      replace: slow(inner.replace),
      end: slow(inner.end)
    })
    const sessions = sessionsOver(store, { perUser })
    const { secretId, live } = await signIn(sessions)
    const all = Promise.allSettled([
      sessions.extend(live),
      look(sessions, secretId),
      sessions.credentials.renew(live, { token: 'x' }),
      sessions.end(live, 'revoked'),
      sessions.extend(live),
      look(sessions, secretId),
      sessions.credentials.renew(live, { token: 'y' })
    ])
    await scheduler.waitFor(all)
    const after = look(sessions, secretId)
    await scheduler.waitFor(after)
    return !('live' in (await after))
  })
  await fc.assert(property, { numRuns: 200, seed })
  t.pass('200 schedules')
})
