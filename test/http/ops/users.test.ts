/** Signed-in users: the last, and those that a search finds, with 100,000 of them. */
import { Redis } from 'ioredis'
import t from 'tap'
import type { SessionsAnswer } from '../../../src/ops/users.ts'
import { type TestGateway, testGateway } from '../../support/gateway.ts'
import { testRedis } from '../../support/redis.ts'
import { minute } from '../../support/sessions.ts'
import { password } from '../../support/sign-in.ts'
import { hashOf } from '../../support/users.ts'

const maxMs = 10
const many = 100_000
const secrets = { SECRET: 'a session secret of at least thirty-two' }
const userAt = (index: number) => ({ source: 'crowd', id: `i${index}`, username: `User-${index}` })

async function list(gateway: TestGateway, query: string): Promise<SessionsAnswer> {
  return (await (await gateway.ops(`/ops/api/sessions?${query}`)).json()) as SessionsAnswer
}

const namesIn = ({ sessions }: SessionsAnswer) => sessions.map(({ user }) => user)

/** The CPU time of this thread: what others do on the machine does not count. */
function cpuMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** For how long work holds the loop at a stretch: the least of some tries, which garbage may join. */
async function stretchOf(work: () => Promise<unknown>): Promise<number> {
  const all: number[] = []
  for (let tries = 0; tries < 5; tries++) {
    let [before, longest, isOver] = [cpuMs(), 0, false]
    const look = () => {
      longest = Math.max(longest, cpuMs() - before)
      before = cpuMs()
      if (!isOver) setImmediate(look)
    }
    setImmediate(look)
    await work()
    isOver = true
    all.push(Math.max(longest, cpuMs() - before))
  }
  return Math.min(...all)
}

t.test('the last users, with their sessions, and those who have a text', async t => {
  const gateway = await testGateway(t.after)
  for (const user of ['alice', 'alice', 'bob']) await gateway.signIn(user)
  const all = await list(gateway, '')
  t.match(all, { users: 2, isWhole: true })
  t.same(namesIn(all), ['bob', 'alice', 'alice'], 'the sessions of one user stand together')
  t.match(await list(gateway, 'size=1'), {
    sessions: [{ user: 'bob', userId: '2', source: 'users-file', address: '127.0.0.1' }],
    isWhole: false
  })
  t.same(namesIn(await list(gateway, 'search=BO')), ['bob'])
  t.same(namesIn(await list(gateway, 'search=2')), ['bob'], 'by id')
  t.match(await list(gateway, 'search=nobody'), { sessions: [], users: 2 })
})

t.test('with 100,000 users in Redis no page and no search holds the loop for 10 ms', async t => {
  const { url } = await testRedis(t.after)
  const names = Array.from({ length: 50 }, (_, index) => `clerk${index}`)
  const gateway = await testGateway(
    t.after,
    {
      gateway: { redis: { url }, session: { secrets: ['${SECRET}'] } },
      users: {
        users: Object.fromEntries(names.map(name => [name, { password: hashOf(password) }]))
      }
    },
    secrets
  )
  const client = new Redis(url)
  t.teardown(() => client.disconnect())
  for (let at = 0; at < many; at += 1000) {
    const members = Array.from({ length: 1000 }, (_, index) => {
      const { source, id, username } = userAt(at + index)
      return [Date.now() + 5 * minute, JSON.stringify([source, id, username])]
    })
    await client.zadd('{cg}:users', ...members.flat())
  }
  for (const name of names) await gateway.signIn(name)
  t.equal((await list(gateway, '')).users, many + 50)
  t.same(new Set(namesIn(await list(gateway, ''))), new Set(names), 'the last')
  t.same(namesIn(await list(gateway, 'search=LERK49')), ['clerk49'], 'among all')
  t.same(namesIn(await list(gateway, 'user=clerk7')), ['clerk7'])
  for (const place of ['/ops/api/sessions', '/ops/users']) {
    for (const query of ['', '?search=clerk', '?search=user', '?search=nobody']) {
      const ms = await stretchOf(async () => await (await gateway.ops(place + query)).text())
      t.ok(ms <= maxMs, `${place}${query}: ${ms.toFixed(1)} ms`)
    }
  }
})
