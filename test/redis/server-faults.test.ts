import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { password as userPassword, testGateway } from '../support/gateway.ts'
import { redisCli } from '../support/redis-cli.ts'
import { signInAt } from '../support/sign-in.ts'
import { until } from '../support/until.ts'
import { testRedis } from '../support/redis.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { profile, replicas, starting, startTrial } from '../support/trial.ts'

const login = '/api/auth/admin/login'
const logout = '/api/account/logout'
/** Nobody listens on it, and no other test will. */
const nowhere = '1'
/** For faults that make nothing hang: what is slow then is the machine. */
const patient = { commandTimeout: '20s' }
const alice = { json: { username: 'alice', password: userPassword } }

/** A gateway whose users sign in at this back-end, which gives a token and takes sign-outs. */
async function atBackEnd(t: Test, backEndUrl: string, url: string, more: object = {}) {
  const { gateway: source, routes } = signInAt(backEndUrl, {
    token: 'token',
    logout: { path: '/bye' }
  })
  const gateway = { ...source, redis: { url, ...patient }, session: { secrets: ['${SECRET}'] } }
  const environment = { SECRET: 'a secret of at least thirty-two characters' }
  const started = await testGateway(t.after, { gateway, routes, ...more }, environment)
  await until('ready', async () => (await started.ops('/readyz')).status === 200)
  return started
}

t.test(
  'Redis is killed and comes back with its append-only file: 503 meanwhile, and everybody is still signed in',
  async t => {
    const folder = mkdtempSync(join(tmpdir(), 'aof-'))
    t.teardown(() => rmSync(folder, { recursive: true, force: true }))
    const options = ['--dir', folder, '--appendonly', 'yes', '--appendfsync', 'always']
    const redis = await testRedis(t.after, options)
    const trial = await startTrial(t, await replicas(t, { url: redis.url }), {
      name: 'killed, restarted with its append-only file'
    })
    await trial.during(async () => {
      await redis.kill()
      await trial.saw('sign-in', 503)
    })
    await trial.over(redis.start)
  }
)

t.test('Redis is killed and comes back with nothing: 401, and people sign in again', async t => {
  const redis = await testRedis(t.after)
  const trial = await startTrial(t, await replicas(t, { url: redis.url }), {
    name: 'killed, restarted empty',
    forgets: true
  })
  await trial.during(async () => {
    await redis.kill()
    await trial.saw('sign-in', 503)
  })
  t.notOk(trial.statuses('during')['profile']?.['401'], 'away is not signed out')
  await trial.over(redis.start)
})

t.test(
  'Redis is frozen and resumes: 503 within the command time-out, and everybody is still signed in',
  async t => {
    const redis = await testRedis(t.after)
    const trial = await startTrial(t, await replicas(t, { url: redis.url }), {
      name: 'frozen, resumed'
    })
    await trial.during(async () => {
      redis.signal('SIGSTOP')
      await trial.saw('sign-in', 503)
    })
    await trial.over(async () => {
      redis.signal('SIGCONT')
    })
  }
)

t.test(
  'Redis turned into a replica: sign-in and sign-out are 503, no false success, and sessions go on',
  async t => {
    const redis = await testRedis(t.after)
    const both = await replicas(t, { url: redis.url, ...patient })
    const [a, b] = both
    const cookie = await a.signIn()
    const trial = await startTrial(t, both, { name: 'turned into a read-only replica' })
    await trial.during(async () => {
      await redisCli(redis.port, 'REPLICAOF', '127.0.0.1', nowhere)
      await trial.saw('sign-in', 503)
      const refused = await a.call(login, alice)
      t.match(refused, { status: 503, json: { errorCode: 'session.unavailable' } })
      t.same(refused.headers.getSetCookie(), [])
      t.equal((await a.call(logout, { cookie })).status, 503)
      await until('sessions go on', async () => (await b.call(profile, { cookie })).status === 200)
      await until('the gateway looked whether the address leads elsewhere now', () =>
        a.log.some(({ reason }) => reason === 'it became a replica')
      )
    })
    await trial.over(async () => await redisCli(redis.port, 'REPLICAOF', 'NO', 'ONE'))
    t.equal((await a.call(logout, { cookie })).status, 200)
  }
)

t.test(
  'a sign-in that Redis refuses leaves the former session of the browser alive, also at its back-end',
  async t => {
    const redis = await testRedis(t.after)
    let signIns = 0
    const backend = await testUpstream(t.after, (request, response, seen) => {
      if (seen.url === '/login') signIns++
      json(200, { id: '7', token: `T${signIns}` })(request, response, seen)
    })
    const gateway = await atBackEnd(t, backend.url, redis.url)
    const cookie = await gateway.signIn()
    // The gateway may have seen for itself what Redis is, and then asks no back-end.
    await until('a sign-in that Redis refuses has asked the back-end', async () => {
      await redisCli(redis.port, 'REPLICAOF', '127.0.0.1', nowhere)
      t.equal((await gateway.call(login, { ...alice, cookie })).status, 503)
      await redisCli(redis.port, 'REPLICAOF', 'NO', 'ONE')
      await until('it lives', async () => (await gateway.call(profile, { cookie })).status === 200)
      return signIns === 2
    })
    const ended = () => backend.seen.filter(({ url }) => url === '/bye')
    await until('the new one was ended', () => ended().length > 0)
    t.same(
      ended().map(({ headers }) => headers.authorization),
      ['Bearer T2']
    )
  }
)

t.test('a sign-in whose client leaves while its session is opened leaves none', async t => {
  const redis = await testRedis(t.after)
  const backend = await testUpstream(t.after, json(200, { id: '7', token: 'T' }))
  // Nothing but the session is written to Redis.
  const gateway = await atBackEnd(t, backend.url, redis.url, { limits: {} })
  await redisCli(redis.port, 'CLIENT', 'PAUSE', '60000', 'WRITE')
  const client = new AbortController()
  const leaving = fetch(gateway.url + login, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(alice.json),
    signal: client.signal
  })
  const clients = async () => (await redisCli(redis.port, 'CLIENT', 'LIST')).split('\n')
  // Beside it the heartbeat of the replica waits, on another connection.
  await until('the session is to be written', async () => {
    const waiting = (await clients()).filter(line => /flags=b .* cmd=eval(?:sha)? /.test(line))
    return backend.begun() > 0 && waiting.length === 2
  })
  client.abort()
  await t.rejects(leaving)
  await gateway.logged(({ status }) => status === 499)
  await redisCli(redis.port, 'CLIENT', 'UNPAUSE')
  await until('the sign-out', () => backend.seen.some(({ url }) => url === '/bye'))
  t.match(await (await gateway.ops('/ops/api/sessions')).json(), { sessions: [] })
  t.notOk(gateway.log.some(({ event }) => event === 'login'))
})

t.test(
  'Redis is full and evicts nothing: sign-in is 503 without a cookie, sessions go on, and sign-out works',
  async t => {
    const redis = await testRedis(t.after, ['--maxmemory-policy', 'noeviction'])
    const both = await replicas(t, { url: redis.url, ...patient })
    const [a, b] = both
    const cookie = await a.signIn()
    const trial = await startTrial(t, both, { name: 'out of memory, noeviction' })
    await trial.during(async () => {
      await redisCli(redis.port, 'CONFIG', 'SET', 'maxmemory', '1')
      await trial.saw('sign-in', 503)
      const refused = await a.call(login, alice)
      t.match(refused, { status: 503, json: { errorCode: 'session.unavailable' } })
      t.same(refused.headers.getSetCookie(), [])
      t.equal((await b.call(profile, { cookie })).status, 200)
      t.equal((await b.call(logout, { cookie })).status, 200)
      t.equal((await a.call(profile, { cookie })).status, 401)
    })
    t.same(
      Object.keys(trial.statuses('during')['profile'] ?? {}),
      ['200'],
      'no session was held up'
    )
    await trial.over(async () => await redisCli(redis.port, 'CONFIG', 'SET', 'maxmemory', '0'))
  }
)

t.test(
  'the password of Redis is changed under a running gateway: 503 until it is right again',
  async t => {
    const redis = await testRedis(t.after, ['--requirepass', 'first-password'])
    const as = (password: string, ...words: string[]) =>
      redisCli(redis.port, '-a', password, '--no-auth-warning', ...words)
    const both = await replicas(
      t,
      { url: redis.url, password: '${REDIS_PASSWORD}' },
      { REDIS_PASSWORD: 'first-password' }
    )
    const trial = await startTrial(t, both, { name: 'wrong password' })
    await trial.during(async () => {
      await as('first-password', 'CONFIG', 'SET', 'requirepass', 'second-password')
      await as('second-password', 'CLIENT', 'KILL', 'TYPE', 'normal')
      await as('second-password', 'CLIENT', 'KILL', 'TYPE', 'pubsub')
      await trial.saw('profile', 503)
      await trial.saw('sign-in', 503)
      await until('it is said in plain words', () =>
        both[0].log.some(({ reason }) => reason === 'the user or the password is wrong')
      )
    })
    await trial.over(
      async () => await as('second-password', 'CONFIG', 'SET', 'requirepass', 'first-password')
    )
    t.notMatch(JSON.stringify(both.map(({ log }) => log)), /first-password|second-password/)
  }
)

t.test('Redis is flushed: 401 at once at every replica, and people sign in again', async t => {
  const redis = await testRedis(t.after)
  const both = await replicas(t, { url: redis.url })
  const cookie = await both[0].signIn()
  const trial = await startTrial(t, both, { name: 'flushed (FLUSHALL)', forgets: true })
  await trial.during(async () => {
    await redisCli(redis.port, 'FLUSHALL')
    for (const gateway of both) {
      await until(
        'it has heard',
        async () => (await gateway.call(profile, { cookie })).status === 401
      )
    }
  })
  await trial.over()
})

t.test(
  'all connections are cut under load, again and again: 200 or 503, and nobody is signed out',
  async t => {
    const redis = await testRedis(t.after)
    const trial = await startTrial(t, await replicas(t, { url: redis.url }), {
      name: 'all connections cut (CLIENT KILL)'
    })
    await trial.during(async () => {
      for (let n = 0; n < 5; n++) {
        for (const type of ['normal', 'pubsub']) {
          await redisCli(redis.port, 'CLIENT', 'KILL', 'TYPE', type)
        }
        await wait(200)
      }
    })
    await trial.over(async () => {})
  }
)

t.test(
  'a replica of the gateway that starts while Redis hangs is not ready, and heals by itself',
  async t => {
    const redis = await testRedis(t.after)
    redis.signal('SIGSTOP')
    const gateway = await starting(t, { url: redis.url })
    await until('it has tried', () =>
      gateway.log.some(({ msg }) => String(msg).startsWith('Redis unavailable'))
    )
    t.equal((await gateway.ops('/readyz')).status, 503)
    t.match(await gateway.call(login, alice), {
      status: 503,
      json: { errorCode: 'session.unavailable' }
    })
    redis.signal('SIGCONT')
    await until(
      'it serves',
      async () => (await gateway.call(profile, { cookie: await gateway.signIn() })).status === 200
    )
    t.equal((await gateway.ops('/readyz')).status, 200)
  }
)
