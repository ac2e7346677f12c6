/** People use their sessions while all happens to Redis: nobody is told wrong. */
import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { faultyProxy } from '../support/faulty-proxy.ts'
import { createJudge } from '../support/judge.ts'
import { createRandom, freshSeed } from '../support/random.ts'
import { flags, testRedis } from '../support/redis.ts'
import { replicas } from '../support/trial.ts'
import { until } from '../support/until.ts'
import { misfortune } from './soak/misfortune.ts'
import { createPeople, usersFile } from './soak/people.ts'

const seconds = Number(process.env['CHAOS_SECONDS'] ?? 40)
const seed = Number(process.env['CHAOS_SEED'] ?? freshSeed())
const staleness = 2000
const users = ['u1', 'u2', 'u3', 'u4', 'u5', 'u6']

t.test(
  `${seconds} seconds of random faults (CHAOS_SEED=${seed}): nobody is signed out or let in by them, nothing hangs, nothing is a 500`,
  async t => {
    const redis = await testRedis(t.after, flags({ appendonly: 'yes', appendfsync: 'always' }))
    const proxy = await faultyProxy(t.after, redis.port)
    const url = `redis://127.0.0.1:${proxy.port}`
    const both = await replicas(t, { url }, {}, usersFile(users))
    const judge = createJudge()
    const places = both.map(({ url, ops }) => ({ url, ask: ops }))
    const people = createPeople({ users, replicas: places, judge, seed, pauseMs: 15 })
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
    for (const { signIn } of both) {
      await until('it works again', async () => (await signIn('u1')) !== '')
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
