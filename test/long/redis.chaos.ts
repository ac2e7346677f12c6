/** People who use their sessions while all kinds of things happen to Redis: nobody is told wrong. */
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { faultyProxy } from '../support/faulty-proxy.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { callOnce } from '../support/call.ts'
import { testSecret } from '../support/ops.ts'
import { createRandom, freshSeed } from '../support/random.ts'
import { testRedis } from '../support/redis.ts'
import { password } from '../support/sign-in.ts'
import { temporaryFolder } from '../support/temporary.ts'
import { until } from '../support/until.ts'
import { misfortune } from './soak/misfortune.ts'
import { createJudge } from '../support/judge.ts'
import { createPeople, type Replica, usersFile } from './soak/people.ts'

const seconds = Number(process.env['CHAOS_SECONDS'] ?? 40)
const seed = Number(process.env['CHAOS_SEED'] ?? freshSeed())
const staleness = 2000
const users = ['u1', 'u2', 'u3', 'u4', 'u5', 'u6']

console.error(`CHAOS_SEED=${seed} CHAOS_SECONDS=${seconds}`)

async function startReplica(t: Test, redisPort: number): Promise<Replica> {
  const folder = await configFolder({
    gateway: {
      redis: { url: `redis://127.0.0.1:${redisPort}` },
      session: { secrets: ['${SESSION_SECRET}'], perUser: { max: 1000 } }
    },
    users: file
  })
  const environment = { SESSION_SECRET: 'a secret of at least thirty-two characters' }
  const { url, opsUrl } = await testGateway(t.after, folder, environment)
  const headers = { authorization: `Bearer ${testSecret}` }
  const replica: Replica = {
    url,
    ask: async (path, options) => await callOnce(opsUrl + path, { ...options, headers })
  }
  await until('ready', async () => (await replica.ask('/readyz')).status === 200)
  return replica
}

const file = usersFile(users)

t.test(
  `${seconds} seconds of random faults (seed ${seed}): nobody is signed out or let in by them, nothing hangs, nothing is a 500`,
  async t => {
    const kept = ['--dir', temporaryFolder(), '--appendonly', 'yes', '--appendfsync', 'always']
    const redis = await testRedis(t.after, kept)
    const proxy = await faultyProxy(t.after, redis.port)
    const replicas = [await startReplica(t, proxy.port), await startReplica(t, proxy.port)]
    const judge = createJudge()
    const people = createPeople({ users, replicas, judge, seed, pauseMs: 15 })
    const random = createRandom(seed)
    const happened: Record<string, number> = {}
    let running = true
    const living = people.live(() => running)
    const end = performance.now() + seconds * 1000
    while (performance.now() < end) {
      const kind = await misfortune(random, redis, proxy)
      happened[kind] = (happened[kind] ?? 0) + 1
      await wait(random.integer(200, 1500))
    }
    const json = { username: 'u1', password }
    for (const { url } of replicas) {
      const signIn = async () => await callOnce(`${url}/api/auth/admin/login`, { json })
      await until('it works again', async () => (await signIn()).status === 200)
    }
    running = false
    await living
    await wait(staleness)
    await people.recount()
    t.same(judge.problems, [])
    const states = judge.sessions().map(({ state }) => state)
    t.ok(states.includes('alive') && states.includes('closed'), 'there was life')
    const stalestMs = judge.stalestMs()
    t.comment(JSON.stringify({ seed, happened, stalestMs, answers: judge.counts }))
  }
)
