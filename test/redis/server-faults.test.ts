/** What may happen to the server of Redis; `trial.ts` judges all that people see meanwhile. */
import t, { type Test } from 'tap'
import { password as userPassword, testGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'
import { type TestRedis, testRedis } from '../support/redis.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { profile, replicas, startTrial, type Trial } from '../support/trial.ts'

const login = '/api/auth/admin/login'
const logout = '/api/account/logout'
/** Nobody listens on it, and no other test will. */
const nowhere = '1'
/** For faults that make nothing hang: what is slow then is the machine. */
const patient = { commandTimeout: '20s' }
const alice = { json: { username: 'alice', password: userPassword } }

interface Part {
  readonly t: Test
  readonly redis: TestRedis
  readonly cli: TestRedis['cli']
  readonly both: Awaited<ReturnType<typeof replicas>>
  /** Of a session of before. */
  readonly cookie: string
  readonly trial: Trial
}

interface Fault {
  /** Further arguments of redis-server. */
  readonly args?: readonly string[]
  /** Further members of the `redis` section. */
  readonly section?: object
  readonly environment?: Record<string, string>
  /** Redis forgets everything. */
  readonly forgets?: boolean
  readonly during: (part: Part) => Promise<unknown>
  readonly end?: (part: Part) => unknown
}

/** That a sign-in is 503 and gives no cookie. */
async function refusesSignIns({ t, both: [a], trial }: Part): Promise<void> {
  await trial.saw('sign-in', 503)
  const refused = await a.call(login, alice)
  t.match(refused, { status: 503, json: { errorCode: 'session.unavailable' } })
  t.same(refused.headers.getSetCookie(), [])
}

const [first, second] = ['first-password', 'second-password']
const authenticated = (word: string) => ['-a', word, '--no-auth-warning']

const faults: Record<string, Fault> = {
  'killed, and back with its append-only file: 503, and everybody is still signed in': {
    args: ['--appendonly', 'yes', '--appendfsync', 'always'],
    during: async ({ redis, trial }) => {
      await redis.kill()
      await trial.saw('sign-in', 503)
    },
    end: async ({ redis }) => await redis.start()
  },
  'killed, and back with nothing: 401, and people sign in again': {
    forgets: true,
    during: async ({ t, redis, trial }) => {
      await redis.kill()
      await trial.saw('sign-in', 503)
      t.notOk(trial.statuses('during')['profile']?.['401'], 'away is not signed out')
    },
    end: async ({ redis }) => await redis.start()
  },
  'frozen, and resumes: 503 within the command time-out, and everybody is still signed in': {
    during: async ({ redis, trial }) => {
      redis.signal('SIGSTOP')
      await trial.saw('sign-in', 503)
    },
    end: ({ redis }) => redis.signal('SIGCONT')
  },
  'turned into a replica: sign-in and sign-out are 503, and sessions go on': {
    section: patient,
    during: async part => {
      const { t, cli, both, cookie } = part
      const [a, b] = both
      await cli('REPLICAOF', '127.0.0.1', nowhere)
      await refusesSignIns(part)
      t.equal(await a.status(logout, { cookie }), 503)
      await until('sessions go on', async () => (await b.status(profile, { cookie })) === 200)
      await a.logged(({ reason }) => reason === 'it became a replica')
    },
    end: async ({ cli }) => await cli('REPLICAOF', 'NO', 'ONE')
  },
  'full, and evicts nothing: sign-in is 503, sessions go on, and sign-out works': {
    args: ['--maxmemory-policy', 'noeviction'],
    section: patient,
    during: async part => {
      const { t, cli, both, cookie, trial } = part
      const [a, b] = both
      await cli('CONFIG', 'SET', 'maxmemory', '1')
      await refusesSignIns(part)
      t.equal(await b.status(profile, { cookie }), 200)
      t.equal(await b.status(logout, { cookie }), 200)
      t.equal(await a.status(profile, { cookie }), 401)
      const statuses = Object.keys(trial.statuses('during')['profile'] ?? {})
      t.same(statuses, ['200'], 'no session was held up')
    },
    end: async ({ cli }) => await cli('CONFIG', 'SET', 'maxmemory', '0')
  },
  'given another password: 503 until it is right again': {
    args: ['--requirepass', first],
    section: { password: '${REDIS_PASSWORD}' },
    environment: { REDIS_PASSWORD: first },
    during: async ({ cli, both, trial }) => {
      await cli(...authenticated(first), 'CONFIG', 'SET', 'requirepass', second)
      for (const type of ['normal', 'pubsub']) {
        await cli(...authenticated(second), 'CLIENT', 'KILL', 'TYPE', type)
      }
      await trial.saw('profile', 503)
      await trial.saw('sign-in', 503)
      await both[0].logged(({ reason }) => reason === 'the user or the password is wrong')
    },
    end: async ({ t, cli, both }) => {
      await cli(...authenticated(second), 'CONFIG', 'SET', 'requirepass', first)
      t.notMatch(JSON.stringify(both.map(({ log }) => log)), /first-password|second-password/)
    }
  },
  'flushed: 401 at once at every replica, and people sign in again': {
    forgets: true,
    during: async ({ cli, both, cookie }) => {
      await cli('FLUSHALL')
      for (const { call } of both) {
        const isOut = async () => (await call(profile, { cookie })).status === 401
        await until('it has heard', isOut)
      }
    }
  }
}

for (const [name, fault] of Object.entries(faults)) {
  t.test(`Redis is ${name}`, async t => {
    const { args, section, environment, forgets = false } = fault
    const redis = await testRedis(t.after, args)
    const both = await replicas(t, { url: redis.url, ...section }, environment)
    const cookie = await both[0].signIn()
    const trial = await startTrial(t, both, { name, forgets })
    const part = { t, redis, cli: redis.cli, both, cookie, trial }
    await trial.during(async () => await fault.during(part))
    await trial.over(fault.end && (async () => await fault.end?.(part)))
  })
}

t.test('a sign-in whose client leaves while its session is opened leaves none', async t => {
  const redis = await testRedis(t.after)
  const backend = await testUpstream(t.after, json(200, { id: '7', token: 'T' }))
  // Nothing but the session is written to Redis.
  const gateway = await testGateway(t.after, {
    redis: { url: redis.url, ...patient },
    backend: backend.url,
    source: { token: 'token', logout: { path: '/bye' } },
    limits: {}
  })
  await gateway.ready()
  await redis.cli('CLIENT', 'PAUSE', '60000', 'WRITE')
  const client = new AbortController()
  const leaving = fetch(gateway.url + login, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(alice.json),
    signal: client.signal
  })
  const clients = async () => (await redis.cli('CLIENT', 'LIST')).split('\n')
  // Beside it the heartbeat of the replica waits, on another connection.
  await until('the session is to be written', async () => {
    const waiting = (await clients()).filter(line => /flags=b .* cmd=eval(?:sha)? /.test(line))
    return backend.begun() > 0 && waiting.length === 2
  })
  client.abort()
  await t.rejects(leaving)
  await gateway.logged(({ status }) => status === 499)
  await redis.cli('CLIENT', 'UNPAUSE')
  await until('the sign-out', () => backend.seen.some(({ url }) => url === '/bye'))
  t.match(await gateway.opsJson('sessions'), { sessions: [] })
  t.notOk(gateway.log.some(({ event }) => event === 'login'))
})
