/** Guesses at passwords, all at once and over three replicas with one Redis. */
import { randomBytes } from 'node:crypto'
import t, { type Test } from 'tap'
import {
  type Called,
  configFolder,
  password,
  type TestGateway,
  testGateway
} from '../support/gateway.ts'
import { redisCli } from '../support/redis-cli.ts'
import { testRedis } from '../support/redis.ts'
import { testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const environment = { SESSION_SECRET: randomBytes(32).toString('base64url') }

/** Three replicas, whose back-end counts the passwords that it is asked about. */
async function threeReplicas(t: Test) {
  const redis = await testRedis(t.after)
  let asked = 0
  const backend = await testUpstream(t.after, (_request, response, { body }) => {
    asked++
    const { username: id, password: typed } = JSON.parse(body.toString()) as Record<string, string>
    const isRight = typed === password
    const answer = isRight ? { code: 0, id } : { code: 1 }
    response
      .writeHead(isRight ? 200 : 401, { 'content-type': 'application/json' })
      .end(JSON.stringify(answer))
  })
  const source = {
    kind: 'upstream-login',
    upstream: 'b',
    path: '/login',
    outcomes: [{ is: 'success', path: 'code', in: [0] }],
    user: { id: 'id' }
  }
  const folder = await configFolder({
    gateway: {
      server: { trustedProxies: ['127.0.0.1'] },
      redis: { url: redis.url, commandTimeout: '30s' },
      session: { secrets: ['${SESSION_SECRET}'] },
      login: { sources: { b: source } }
    },
    routes: { upstreams: { b: { url: backend.url } } },
    limits: { lockout: {} }
  })
  const all = await Promise.all([1, 2, 3].map(() => testGateway(t.after, folder, environment)))
  const at = (index: number, username: string, typed: string, address: string, cookie?: string) =>
    (all[index % 3] as TestGateway).call('/api/auth/admin/login', {
      json: { username, password: typed },
      headers: { 'x-forwarded-for': address },
      ...(cookie !== undefined && { cookie })
    })
  for (const [index, gateway] of all.entries()) {
    await until('ready', async () => (await gateway.ops('/readyz')).status === 200)
    // Failures have a connection of their own; until it is there, each process counts.
    await until('it counts in Redis', async () => {
      await at(index, `nobody-${index}`, 'wrong', `192.0.2.${index}`)
      return (await redisCli(redis.port, 'EXISTS', `{cg}:f:account nobody-${index}`)) === '1'
    })
  }
  const signIn = (index: number, typed: string, address: string, cookie?: string) =>
    at(index, 'alice', typed, address, cookie)
  /** 200 guesses at once. */
  const guess = async (from: (index: number) => string, of = (_index: number) => 'alice') => {
    const before = asked
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, index) => at(index, of(index), 'wrong', from(index)))
    )
    return { looked: asked - before, ...counted(answers) }
  }
  return { signIn, guess }
}

const counted = (answers: readonly Called[]) => ({
  refused: answers.filter(({ status }) => status === 401).length,
  locked: answers.filter(({ status }) => status === 429).length
})

const knownOf = ({ headers }: Called) =>
  headers
    .getSetCookie()
    .find(cookie => /console_known=/.test(cookie))
    ?.split(';', 1)[0]

t.test('of 200 guesses from one address 5 are looked at, and the owner comes in', async t => {
  const { signIn, guess } = await threeReplicas(t)
  const home = '203.0.113.7'
  const known = knownOf(await signIn(0, password, home))
  t.same(await guess(() => '198.51.100.1'), { looked: 5, refused: 5, locked: 195 })
  t.equal((await signIn(1, password, home)).status, 200, 'from elsewhere')
  t.equal((await signIn(2, password, '198.51.100.1')).status, 429)
  t.equal((await signIn(2, password, '198.51.100.1', known)).status, 200, 'even from there')
})

t.test('of 200 guesses from 200 addresses 50 are looked at, and the owner comes in', async t => {
  const { signIn, guess } = await threeReplicas(t)
  const home = '203.0.113.7'
  const known = knownOf(await signIn(0, password, home))
  t.same(await guess(index => `198.51.100.${index}`), { looked: 50, refused: 50, locked: 150 })
  t.equal((await signIn(1, password, home)).status, 429, 'a browser that nobody knows')
  for (let index = 0; index < 3; index++) {
    t.equal((await signIn(index, password, home, known)).status, 200, `replica ${index}`)
  }
})

t.test('of 200 guesses at 200 accounts from one address 20 are looked at', async t => {
  const { guess } = await threeReplicas(t)
  const guessed = await guess(
    () => '198.51.100.1',
    index => `user-${index}`
  )
  t.same(guessed, { looked: 20, refused: 20, locked: 180 })
})
