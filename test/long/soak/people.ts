/** Users who sign in, use their sessions anywhere, sign out, and have all of theirs closed. */
import { setTimeout as wait } from 'node:timers/promises'
import { type Judge, judgedUsers } from '../../support/judge.ts'
import { createRandom, type Random, seedOf } from '../../support/random.ts'
import { password } from '../../support/sign-in.ts'
import { hashOf } from '../../support/users.ts'

interface Replica {
  readonly url: string
  /** Asks the operators' listener. */
  readonly ask: (path: string, call: { json: unknown }) => Promise<{ readonly status: number }>
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

/** users.yaml, the same at every replica: another hash is another password, which ends sessions. */
export function usersFile(names: readonly string[]): Record<string, unknown> {
  const hash = hashOf(password)
  const each = names.map(name => [name, { password: hash, id: name, name, roles: ['user'] }])
  return { users: Object.fromEntries(each) }
}

export function createPeople(options: Options) {
  const { users, replicas, judge, seed, paths = [], pauseMs = 60 } = options
  const { call, use, signIn, signOut, recount } = judgedUsers({ judge })
  const of = (user: string) => judge.sessions().filter(session => session.user === user)

  async function closeAll(user: string, { ask }: Replica): Promise<void> {
    const all = of(user).filter(({ state }) => state !== 'closed')
    judge.closing(all)
    const answer = await ask('/ops/api/sessions/close', { json: { user } }).catch(() => undefined)
    judge.count(`revocation ${answer?.status ?? 'none'}`)
    if (answer?.status === 200) judge.closed(all)
  }

  async function act(user: string, random: Random): Promise<unknown> {
    const at = random.pick(replicas)
    const mine = of(user)
    const open = mine.filter(({ state }) => state === 'alive')
    const [oldest] = open
    const chance = random.next()
    if (oldest !== undefined && (open.length > maxOpen || chance < 0.03)) {
      return await signOut(oldest, at)
    }
    if (open.length === 0 || chance < 0.08) return await signIn(user, at)
    if (chance < 0.085) return await closeAll(user, at)
    if (chance < 0.2 && paths.length > 0) {
      const headers = { cookie: random.pick(open).cookie }
      const path = `${random.pick(paths)}/${random.integer(0, 10_000)}`
      return await call('another path', at, path, { headers })
    }
    return await use(random.chance(0.7) ? random.pick(open) : random.pick(mine.slice(-30)), at)
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
    recount: async () => await recount(replicas),
    signInAll: async (each: number) => {
      for (const user of users) {
        for (let count = 0; count < each; count++) {
          await signIn(user, replicas[count % replicas.length] as Replica)
        }
      }
    }
  }
}
