/** Users who sign in, use their sessions at any replica, sign out, and have all of theirs closed. */
import { setTimeout as wait } from 'node:timers/promises'
import { type Answer, callOnce } from '../../support/call.ts'
import type { GatewayProcess } from '../../support/gateway-process.ts'
import { createRandom, type Random, seedOf } from '../../support/random.ts'
import { cookieIn, password } from '../../support/sign-in.ts'
import { hashOf } from '../../support/users.ts'
import type { Judge, Session } from '../../support/judge.ts'

export type Replica = Pick<GatewayProcess, 'url' | 'ask'>

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

/** users.yaml, the same at every replica: another hash is another password, which ends sessions. */
export function usersFile(names: readonly string[]): Record<string, unknown> {
  const hash = hashOf(password)
  const each = names.map(name => [name, { password: hash, id: name, name, roles: ['user'] }])
  return { users: Object.fromEntries(each) }
}

export function createPeople(options: Options) {
  const { users, replicas, judge, seed, paths = [], pauseMs = 60 } = options
  const of = (user: string) => judge.sessions().filter(session => session.user === user)

  async function call(
    what: string,
    { url }: Replica,
    path: string,
    more: object
  ): Promise<Answer | undefined> {
    const beganAt = performance.now()
    const options = { timeoutMs: patienceMs, ...more }
    const answer = await callOnce(url + path, options).catch((error: unknown) => {
      const afterMs = Math.round(performance.now() - beganAt)
      judge.odd(`${what}: ${path} got no answer, after ${afterMs} ms: ${String(error)}`)
      return undefined
    })
    judge.count(`${what} ${answer?.status ?? 'none'}`)
    return answer
  }

  async function signIn(user: string, at: Replica): Promise<void> {
    const answer = await call('sign-in', at, '/api/auth/admin/login', {
      json: { username: user, password }
    })
    const cookie = cookieIn(answer?.headers['set-cookie'])
    if (answer?.status === 200) judge.opened(user, cookie)
    else if (cookie !== '') judge.odd('a sign-in that failed set a cookie')
    else if (!quick.includes(answer?.status ?? 0) || answer?.status === 401) {
      judge.odd(`a sign-in is answered ${answer?.status} ${answer?.text}`)
    }
  }

  async function use(session: Session, at: Replica): Promise<number> {
    const { state, cookie } = session
    const beganAt = performance.now()
    const answer = await call(`profile of ${state}`, at, '/api/account/profile', {
      headers: { cookie }
    })
    const status = answer?.status ?? 0
    if (!quick.includes(status)) judge.odd(`a profile is answered ${status} ${answer?.text}`)
    judge.used(session, state, beganAt, { status, text: answer?.text ?? '' })
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

  async function closeAll(user: string, { ask }: Replica): Promise<void> {
    const all = of(user).filter(({ state }) => state !== 'closed')
    judge.closing(all)
    const answer = await ask('/ops/api/sessions/close', { json: { user } }).catch(() => undefined)
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

  /** Asks until it is surely known how a session stands. */
  async function recountAt(session: Session, at: Replica): Promise<void> {
    const giveUp = performance.now() + 60_000
    for (;;) {
      const status = await use(session, at)
      if (status === 200 || status === 401) return
      if (performance.now() > giveUp) {
        return judge.odd(`a profile is answered ${status} for a minute`)
      }
      await wait(200)
    }
  }

  return {
    /** They begin; ends when `runs` says so. */
    live: async (runs: () => boolean) => {
      const lives = users.map(async (user, index) => {
        const random = createRandom(seedOf(seed, index))
        while (runs()) {
          await act(user, random)
          await wait(random.next() * pauseMs)
        }
      })
      await Promise.all(lives)
    },
    /** Every session that is known, at every replica. */
    recount: async () => {
      for (const session of judge.sessions()) {
        for (const at of replicas) await recountAt(session, at)
      }
    },
    signInAll: async (each: number) => {
      for (const user of users) {
        for (let count = 0; count < each; count++) {
          await signIn(user, replicas[count % replicas.length] as Replica)
        }
      }
    }
  }
}
