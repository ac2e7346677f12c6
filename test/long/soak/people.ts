/** Users who sign in, use their sessions at any replica, sign out, and have all of theirs closed. */
import { setTimeout as wait } from 'node:timers/promises'
import { callOnce, type PlainAnswer } from '../../support/gateway-process.ts'
import { createRandom, type Random, seedOf } from '../../support/random.ts'
import { cookieIn, password } from '../../support/sign-in.ts'
import type { Judge, Session } from './judge.ts'
import type { Replica } from './replica.ts'

export interface People {
  /** They begin; ends when `runs` says so. */
  readonly live: (runs: () => boolean) => Promise<void>
  /** Every session that is known, at every replica, until it is surely known how it stands. */
  readonly recount: () => Promise<void>
  readonly signInAll: (each: number) => Promise<void>
  readonly closeEveryone: () => Promise<boolean>
}

interface Options {
  readonly users: readonly string[]
  readonly replicas: readonly Replica[]
  readonly judge: Judge
  readonly seed: number
  /** What else they call, beside their profile. */
  readonly paths?: readonly string[]
  readonly pauseMs?: number
}

/** Who has so many open signs out next. */
const maxOpen = 6
/** Longer than any time-out of the gateway: what takes longer hangs. */
const patienceMs = 20_000
const quick = [0, 200, 401, 429, 503]

export function createPeople(options: Options): People {
  const { users, replicas, judge, seed, paths = [], pauseMs = 60 } = options
  const of = (user: string) => judge.sessions().filter(session => session.user === user)

  async function call(
    what: string,
    { current }: Replica,
    path: string,
    more: object
  ): Promise<PlainAnswer | undefined> {
    const gateway = current()
    if (gateway === undefined) return undefined
    const beganAt = performance.now()
    let reason = ''
    const answer = await callOnce(gateway.url + path, { timeoutMs: patienceMs, ...more }).catch(
      (error: unknown) => {
        reason = String(error)
        return undefined
      }
    )
    // Whoever is being replaced, or has just been, owes no answer.
    if (answer === undefined && current() !== gateway) return undefined
    if (answer === undefined) {
      const afterMs = Math.round(performance.now() - beganAt)
      judge.odd(`${what}: ${path} got no answer, after ${afterMs} ms: ${reason}`)
    }
    judge.count(`${what} ${answer?.status ?? 'none'}`)
    return answer
  }

  async function signIn(user: string, at: Replica): Promise<void> {
    const answer = await call('sign-in', at, '/api/auth/admin/login', {
      json: { username: user, password }
    })
    if (answer?.status === 200) judge.opened(user, cookieIn(answer.headers['set-cookie']))
    else if (!quick.includes(answer?.status ?? 0) || answer?.status === 401) {
      judge.odd(`a sign-in is answered ${answer?.status} ${answer?.body}`)
    }
  }

  async function use(session: Session, at: Replica): Promise<number> {
    const { state, cookie } = session
    const beganAt = performance.now()
    const answer = await call(`profile of ${state}`, at, '/api/account/profile', {
      headers: { cookie }
    })
    const status = answer?.status ?? 0
    if (!quick.includes(status)) judge.odd(`a profile is answered ${status} ${answer?.body}`)
    judge.used(session, state, beganAt, { status, body: answer?.body ?? '' })
    return status
  }

  async function signOut(session: Session, at: Replica): Promise<void> {
    judge.closing([session])
    const { cookie } = session
    const answer = await call('sign-out', at, '/api/account/logout', {
      method: 'POST',
      headers: { cookie }
    })
    if (answer?.status === 200) judge.closed([session])
  }

  async function closeAll(user: string, { current }: Replica): Promise<void> {
    const all = of(user).filter(({ state }) => state !== 'closed')
    judge.closing(all)
    const answer = await current()
      ?.ask('/ops/api/sessions/close', { json: { user } })
      .catch(() => undefined)
    judge.count(`revocation ${answer?.status ?? 'none'}`)
    if (answer?.status === 200) judge.closed(all)
  }

  async function act(user: string, random: Random): Promise<void> {
    const at = random.pick(replicas)
    const mine = of(user)
    const open = mine.filter(({ state }) => state === 'alive')
    const chance = random.next()
    if (open.length > maxOpen || chance < 0.03) {
      const session = open[0]
      return session === undefined ? undefined : await signOut(session, at)
    }
    if (open.length === 0 || chance < 0.08) return await signIn(user, at)
    if (chance < 0.085) return await closeAll(user, at)
    if (chance < 0.2 && paths.length > 0) {
      const cookie = random.pick(open).cookie
      const path = `${random.pick(paths)}/${random.integer(0, 10_000)}`
      await call('another path', at, path, { headers: { cookie } })
      return
    }
    await use(random.chance(0.7) ? random.pick(open) : random.pick(mine.slice(-30)), at)
  }

  return {
    live: async runs => {
      await Promise.all(
        users.map(async (user, index) => {
          const random = createRandom(seedOf(seed, index))
          while (runs()) {
            await act(user, random)
            await wait(random.next() * pauseMs)
          }
        })
      )
    },
    recount: async () => {
      for (const session of judge.sessions()) {
        for (const at of replicas) {
          const giveUp = performance.now() + 60_000
          let status = 0
          do {
            status = await use(session, at)
            if (status !== 200 && status !== 401) await wait(200)
          } while (status !== 200 && status !== 401 && performance.now() < giveUp)
          if (status !== 200 && status !== 401) {
            judge.odd(`a profile is answered ${status} for a minute`)
          }
        }
      }
    },
    signInAll: async each => {
      for (const user of users) {
        for (let count = 0; count < each; count++) {
          await signIn(user, replicas[count % replicas.length] as Replica)
        }
      }
    },
    closeEveryone: async () => {
      const all = judge.sessions().filter(({ state }) => state !== 'closed')
      judge.closing(all)
      const answer = await replicas[0]
        ?.current()
        ?.ask('/ops/api/sessions/close', { json: { everyone: true } })
      if (answer?.status === 200) judge.closed(all)
      return answer?.status === 200
    }
  }
}
