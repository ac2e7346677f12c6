import t, { type Test } from 'tap'
import { createRedisDialler } from '../../src/services/redis.ts'
import { defineCommands } from '../../src/session/redis-scripts.ts'
import { createRedisStore } from '../../src/session/redis-store.ts'
import { redisConfig } from '../support/config.ts'
import { configFolder, type Files, testGateway } from '../support/gateway.ts'
import { linesIn } from '../support/ledger.ts'
import { redisCli } from '../support/redis-cli.ts'
import { testRedis } from '../support/redis.ts'
import { testSentinel } from '../support/sentinel.ts'
import { signInAt } from '../support/sign-in.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const environment = {
  SESSION_SECRET: 'a secret of at least thirty-two characters',
  AUDIT_KEY: 'an audit key of at least thirty-two bytes'
}
const logout = '/api/account/logout'
const profile = '/api/account/profile'
const hour = 3_600_000

/** A gateway over a primary, its replicas and Sentinels. */
async function gatewayOver(
  t: Test,
  session: Record<string, unknown> = {},
  { count = 1, files = {} }: { readonly count?: number; readonly files?: Files } = {}
) {
  const sentinel = await testSentinel(t.after, [], count)
  const folder = await configFolder({
    ...files,
    gateway: {
      ...files.gateway,
      redis: { sentinels: sentinel.sentinels, primary: sentinel.name },
      session: { secrets: ['${SESSION_SECRET}'], perUser: { max: 1000 }, ...session }
    }
  })
  const gateway = await testGateway(t.after, folder, environment)
  const signIn = async () => {
    let cookie = ''
    await until('one signs in', async () => {
      cookie = await gateway.signIn()
      return true
    })
    return cookie
  }
  return { sentinel, gateway, signIn }
}

for (const count of [1, 2]) {
  t.test(
    `of ${count} replicas one hangs: sign-out is 503 and keeps the cookie, also when tried again, until it confirms`,
    async t => {
      const { sentinel, gateway, signIn } = await gatewayOver(t, {}, { count })
      const hanging = sentinel.servers.at(-1)
      const cookie = await signIn()
      hanging?.signal('SIGSTOP')
      for (const attempt of ['first', 'second']) {
        const answer = await gateway.call(logout, { cookie, method: 'POST' })
        t.equal(answer.status, 503, attempt)
        t.equal(answer.json.errorCode, 'session.unavailable')
        t.same(answer.headers.getSetCookie(), [])
      }
      hanging?.signal('SIGCONT')
      await until(
        'the sign-out is acknowledged',
        async () => (await gateway.call(logout, { cookie, method: 'POST' })).status === 200
      )
      for (const { port } of sentinel.servers) {
        // A sign-in that a busy machine made late has left a record of its own.
        const keys = (await redisCli(port, 'KEYS', 'cg:session:*')).split('\n')
        const records = await Promise.all(keys.map(key => redisCli(port, 'GET', key)))
        t.ok(records.includes('!revoked'), 'at each server')
      }
      t.equal((await gateway.call(profile, { cookie })).status, 401)
    }
  )
}

t.test('a sign-out that was 503 reaches the back-end, the ledger and the log', async t => {
  const backend = await testUpstream(t.after, json(200, { id: '7', token: 'T' }))
  const { gateway: login, routes } = signInAt(backend.url, {
    token: 'token',
    logout: { path: '/bye' }
  })
  const { sentinel, gateway, signIn } = await gatewayOver(
    t,
    {},
    { files: { gateway: { ...login, audit: { key: '${AUDIT_KEY}' } }, routes } }
  )
  const cookie = await signIn()
  sentinel.servers[1].signal('SIGSTOP')
  t.equal((await gateway.call(logout, { cookie, method: 'POST' })).status, 503)
  sentinel.servers[1].signal('SIGCONT')
  await until(
    'the sign-out is acknowledged',
    async () => (await gateway.call(logout, { cookie, method: 'POST' })).status === 200
  )
  await until('the back-end was told', () => backend.seen.some(({ url }) => url === '/bye'))
  const signOuts = () => linesIn(gateway.folder).filter(({ kind }) => kind === 'sign-out')
  await until('it is recorded', () => signOuts().length > 0)
  t.match(signOuts(), [{ user: 'alice', userId: '7', code: 'session.unavailable' }])
  const logged = gateway.log.filter(({ event }) => event === 'logout')
  t.match(logged, [{ user: 'alice', userId: '7', code: 'session.unavailable' }])
})

t.test(
  'a revocation by the user that was 503 is not acknowledged by a second try either, until the replica confirms',
  async t => {
    const audit = { key: '${AUDIT_KEY}' }
    const { sentinel, gateway, signIn } = await gatewayOver(
      t,
      {},
      { files: { gateway: { audit } } }
    )
    const [cookie, other] = [await signIn(), await signIn()]
    sentinel.servers[1].signal('SIGSTOP')
    const closeOthers = async () =>
      (await gateway.call('/api/session/close', { cookie, json: { others: true } })).status
    t.equal(await closeOthers(), 503)
    // What is over leaves the list with its next reading.
    await gateway.call('/api/session/list', { cookie })
    t.equal(await closeOthers(), 503)
    sentinel.servers[1].signal('SIGCONT')
    await until('it is acknowledged', async () => (await closeOthers()) === 200)
    // On a busy machine the replica may be late again: then nobody knows, and it is 503.
    const ofOther = async () => (await gateway.call(profile, { cookie: other })).status
    await until('the other one is over', async () => {
      const status = await ofOther()
      t.not(status, 200)
      return status === 401
    })
    await until(
      'this one goes on',
      async () => (await gateway.call(profile, { cookie })).status === 200
    )
    const lines = () => linesIn(gateway.folder).filter(({ kind }) => kind === 'sessions.revoked')
    await until('it is recorded', () => lines().length > 0)
    t.match(lines(), [{ user: 'alice', code: 'session.unavailable' }])
  }
)

t.test('with session.revocation: primary a replica that hangs holds up no sign-out', async t => {
  const { sentinel, gateway, signIn } = await gatewayOver(t, { revocation: 'primary' })
  const cookie = await signIn()
  sentinel.servers[1].signal('SIGSTOP')
  t.equal((await gateway.call(logout, { cookie, method: 'POST' })).status, 200)
  sentinel.servers[1].signal('SIGCONT')
})

t.test('a replica that Sentinel calls down is waited for no more', async t => {
  const { sentinel, gateway, signIn } = await gatewayOver(t)
  const cookie = await signIn()
  await sentinel.servers[1].kill()
  await until(
    'a sign-in needs no replica that is gone',
    async () => await gateway.signIn().then(() => true)
  )
  await sentinel.downAfter(500)
  await until(
    'the sign-out is acknowledged',
    async () => (await gateway.call(logout, { cookie, method: 'POST' })).status === 200
  )
  t.equal((await gateway.call(profile, { cookie })).status, 401)
})

t.test(
  'too few Sentinels answer: a sign-out is 503, since nobody knows which replicas there are',
  async t => {
    const { sentinel, gateway, signIn } = await gatewayOver(t)
    const cookie = await signIn()
    for (const address of sentinel.sentinels.slice(0, 2)) {
      await redisCli(Number(address.split(':')[1]), 'SHUTDOWN', 'NOSAVE').catch(() => {})
    }
    t.equal((await gateway.call(logout, { cookie, method: 'POST' })).status, 503)
  }
)

t.test(
  'a primary that has not heard of a revocation of the last minute hears of it before it is read from',
  async t => {
    const redis = await testRedis(t.after)
    const dialler = createRedisDialler(redisConfig({ url: redis.url }), '.')
    const client = dialler.client({ onUp: () => {}, onDown: () => {} })
    const replicated = dialler.replicatedWrites(client, {
      barrierKey: 'b',
      prepare: defineCommands,
      onRefused: () => {}
    })
    t.after(() => {
      replicated.close()
      client.disconnect()
    })
    const store = createRedisStore({
      redis: client,
      prefix: 'test:',
      follow: () => {},
      replicated,
      onPrimary: changed => dialler.onTopology(client, changed)
    })
    await until('the store answers', async () => await store.ping())
    await store.create('a', 'sealed', hour)
    await store.end('a', '!revoked', hour)
    await redisCli(redis.port, 'SET', 'test:session:a', 'sealed', 'PX', String(hour))
    await redisCli(redis.port, 'SET', 'test:clock:{test:session:a}', 'x', 'PX', String(hour))
    await redisCli(redis.port, 'CLIENT', 'KILL', 'TYPE', 'normal')
    let record: string | undefined
    await until(
      'the store answers again',
      async () => (record = (await store.read('a'))?.record) !== undefined
    )
    t.equal(record, '!revoked')
  }
)

t.test(
  'an ACL without WAIT: sign-outs are acknowledged by the primary, and the log says so once',
  async t => {
    const primary = await testRedis(t.after)
    const replica = await testRedis(t.after, ['--replicaof', `127.0.0.1 ${primary.port}`])
    await until('the replica follows', async () =>
      (await redisCli(replica.port, 'INFO', 'replication')).includes('master_link_status:up')
    )
    await redisCli(
      primary.port,
      'ACL',
      'SETUSER',
      'gateway',
      'on',
      '>secret',
      '~*',
      '&*',
      '+@all',
      '-wait'
    )
    const folder = await configFolder({
      gateway: {
        redis: { url: primary.url, username: 'gateway', password: '${REDIS_PASSWORD}' },
        session: { secrets: ['${SESSION_SECRET}'] }
      }
    })
    const gateway = await testGateway(t.after, folder, { ...environment, REDIS_PASSWORD: 'secret' })
    for (let n = 0; n < 2; n++) {
      let cookie = ''
      await until('one signs in', async () => {
        cookie = await gateway.signIn()
        return true
      })
      t.equal((await gateway.call(logout, { cookie, method: 'POST' })).status, 200)
    }
    t.equal(gateway.log.filter(({ msg }) => String(msg).includes('does not allow WAIT')).length, 1)
  }
)
