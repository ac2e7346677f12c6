import { randomInt } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { hashOf } from '../support/users.ts'
import { type FaultyProxy, faultyProxy, type Mode } from '../support/faulty-proxy.ts'
import {
  configFolder,
  cookieOf,
  password,
  testGateway,
  type TestGateway
} from '../support/gateway.ts'
import { redisCli } from '../support/redis-cli.ts'
import { until } from '../support/until.ts'
import { testRedis, type TestRedis } from '../support/redis.ts'

const seconds = Number(process.env['CHAOS_SECONDS'] ?? 40)
const seed = Number(process.env['CHAOS_SEED'] ?? randomInt(2 ** 31))
const staleness = 2000
/** Nobody listens on it. */
const nowhere = '1'
const users = ['u1', 'u2', 'u3', 'u4', 'u5', 'u6']

console.error(`CHAOS_SEED=${seed} CHAOS_SECONDS=${seconds}`)

/** The same numbers for the same seed (mulberry32). */
function numbers(from: number): () => number {
  let state = from
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let x = Math.imul(state ^ (state >>> 15), 1 | state)
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x
    return ((x ^ (x >>> 14)) >>> 0) / 4_294_967_296
  }
}

const oneOf = <T>(random: () => number, choices: readonly T[]): T =>
  choices[Math.floor(random() * choices.length)] as T

/** By the book: `unsure` is a session whose end was asked for and not confirmed. */
interface Known {
  readonly cookie: string
  state: 'open' | 'closed' | 'unsure'
  closedAt: number
}

/** One user: signs in, uses old and new sessions, signs out, has all of them closed; anywhere, without a pause for faults. */
async function live(
  user: string,
  gateways: readonly TestGateway[],
  random: () => number,
  running: () => boolean,
  wrong: (what: string) => void,
  count: (what: string) => void
): Promise<Known[]> {
  const book: Known[] = []
  const open = () => book.filter(({ state }) => state === 'open')

  async function bounded<T extends { status: number }>(
    what: string,
    allowed: readonly number[],
    ask: () => Promise<T>
  ): Promise<T | undefined> {
    const answer = await Promise.race([
      ask().catch((error: unknown) => wrong(`${what}: ${String(error)}`) as undefined),
      wait(20_000, undefined, { ref: false })
    ])
    count(`${what} ${answer?.status ?? 'no answer'}`)
    if (answer === undefined || !allowed.includes(answer.status)) {
      wrong(`${what}: ${answer?.status ?? 'no answer'}`)
    }
    return answer
  }

  const closed = (sessions: readonly Known[]) => {
    for (const session of sessions) {
      Object.assign(session, { state: 'closed', closedAt: performance.now() })
    }
  }
  const acts = {
    signIn: async (at: TestGateway) => {
      const answer = await bounded(
        'sign-in',
        [200, 503],
        async () => await at.call('/api/auth/admin/login', { json: { username: user, password } })
      )
      if (answer?.status === 200) {
        book.push({ cookie: cookieOf(answer), state: 'open', closedAt: 0 })
      } else if (answer?.headers.getSetCookie().length !== 0) {
        wrong('a sign-in that failed set a cookie')
      }
    },
    use: async (at: TestGateway) => {
      const session = oneOf(random, random() < 0.7 && open().length > 0 ? open() : book.slice(-20))
      if (session === undefined) return
      const began = performance.now()
      const status = (
        await bounded(
          `use of the ${session.state}`,
          session.state === 'open' ? [200, 503] : [200, 401, 503],
          async () => await at.call('/api/account/profile', { cookie: session.cookie })
        )
      )?.status
      if (session.state === 'closed' && status === 200 && began - session.closedAt > staleness) {
        wrong(`a session was accepted ${Math.round(began - session.closedAt)} ms after its end`)
      }
      if (session.state === 'unsure' && status === 401) closed([session])
    },
    signOut: async (at: TestGateway) => {
      const [session] = open()
      if (session === undefined) return
      session.state = 'unsure'
      if (
        (
          await bounded(
            'sign-out',
            [200, 503],
            async () =>
              await at.call('/api/account/logout', { method: 'POST', cookie: session.cookie })
          )
        )?.status === 200
      ) {
        closed([session])
      }
    },
    closeAll: async (at: TestGateway) => {
      const all = book.filter(({ state }) => state !== 'closed')
      for (const session of all) session.state = 'unsure'
      const answer = await bounded(
        'revocation',
        [200, 503],
        async () => await at.ops('/ops/api/sessions/close', { json: { user } })
      )
      if (answer?.status === 200) closed(all)
    }
  }
  while (running()) {
    const n = random()
    await acts[n < 0.12 ? 'signIn' : n < 0.92 ? 'use' : n < 0.98 ? 'signOut' : 'closeAll'](
      oneOf(random, gateways)
    )
    await wait(random() * 15)
  }
  return book
}

/** Something happens to Redis, lasts, and is over; gives its name. */
async function misfortune(
  random: () => number,
  redis: TestRedis,
  proxy: FaultyProxy
): Promise<string> {
  const ms = 100 + random() * 2400
  const cli = async (...words: string[]) => await redisCli(redis.port, ...words)
  const modes: readonly Mode[] = [
    'lose-answers',
    'swallow',
    'garbage',
    'refuse',
    'cut',
    'trickle',
    'flap',
    { delayMs: 100 },
    { delayMs: 600 }
  ]
  const kinds: Record<string, () => Promise<void>> = {
    proxy: async () => {
      await proxy.set(oneOf(random, modes), oneOf(random, ['all', 'all', 'there', 'news'] as const))
      await wait(ms)
      await proxy.set('pass', 'news')
      await proxy.set('pass')
    },
    killed: async () => {
      await redis.kill()
      await wait(ms)
      await redis.start()
    },
    frozen: async () => {
      redis.signal('SIGSTOP')
      await wait(ms)
      redis.signal('SIGCONT')
    },
    cut: async () => {
      for (const type of ['normal', 'pubsub']) {
        if (random() < 0.7) await cli('CLIENT', 'KILL', 'TYPE', type)
      }
    },
    full: async () => {
      await cli('CONFIG', 'SET', 'maxmemory', '1')
      await wait(ms)
      await cli('CONFIG', 'SET', 'maxmemory', '0')
    },
    replica: async () => {
      await cli('REPLICAOF', '127.0.0.1', nowhere)
      await wait(ms)
      await cli('REPLICAOF', 'NO', 'ONE')
    }
  }
  const kind = oneOf(random, ['proxy', 'proxy', 'proxy', 'proxy', ...Object.keys(kinds)])
  await kinds[kind]?.()
  return kind
}

t.test(
  `${seconds} seconds of random faults (seed ${seed}): nobody is signed out or let in by them, nothing hangs, nothing is a 500`,
  async t => {
    const folder = mkdtempSync(join(tmpdir(), 'chaos-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const redis = await testRedis(t.after, [
      '--dir',
      folder,
      '--appendonly',
      'yes',
      '--appendfsync',
      'always'
    ])
    const proxy = await faultyProxy(t.after, redis.port)
    const hash = hashOf(password)
    const config = async () =>
      await configFolder({
        gateway: {
          redis: { url: `redis://127.0.0.1:${proxy.port}` },
          session: { secrets: ['${SESSION_SECRET}'], perUser: { max: 1000 } }
        },
        users: {
          users: Object.fromEntries(
            users.map(user => [user, { password: hash, id: user, name: user, roles: ['user'] }])
          )
        }
      })
    const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
    const gateways = [
      await testGateway(t.after, await config(), environment),
      await testGateway(t.after, await config(), environment)
    ]
    for (const gateway of gateways) {
      await until('ready', async () => (await gateway.ops('/readyz')).status === 200)
    }

    const problems: string[] = []
    const counts: Record<string, number> = {}
    const happened: Record<string, number> = {}
    let running = true
    const began = performance.now()
    const lives = users.map((user, n) =>
      live(
        user,
        gateways,
        numbers(seed + n + 1),
        () => running,
        what => problems.push(`${((performance.now() - began) / 1000).toFixed(1)} s: ${what}`),
        what => {
          counts[what] = (counts[what] ?? 0) + 1
        }
      )
    )
    const random = numbers(seed)
    while (performance.now() - began < seconds * 1000) {
      const kind = await misfortune(random, redis, proxy)
      happened[kind] = (happened[kind] ?? 0) + 1
      await wait(200 + random() * 1300)
    }
    await Promise.all(
      gateways.map(async gateway => {
        await until(
          'it works again',
          async () =>
            (await gateway.call('/api/auth/admin/login', { json: { username: 'u1', password } }))
              .status === 200
        )
      })
    )
    running = false
    const books = (await Promise.all(lives)).flat()
    await wait(staleness)
    const open = books.filter(({ state }) => state === 'open')
    for (const gateway of gateways) {
      for (const { cookie, state } of [
        ...open,
        ...books.filter(session => session.state === 'closed').slice(-300)
      ]) {
        let status = 0
        // On a busy machine even a sound Redis can be late once; then it has not been said yet.
        await until(
          'it is surely known who is signed in',
          async () =>
            (status = (await gateway.call('/api/account/profile', { cookie })).status) !== 503
        )
        // Only what ended within the last ten minutes still has its reason; either way it is 401.
        if (status !== (state === 'open' ? 200 : 401)) {
          problems.push(`afterwards: ${status} for a session that is ${state}`)
        }
      }
    }
    t.same(problems, [])
    t.ok(open.length > 0 && books.length > open.length, 'there was life')
    t.comment(
      JSON.stringify({
        seed,
        faults: happened,
        sessions: books.length,
        open: open.length,
        answers: counts
      })
    )
  }
)
