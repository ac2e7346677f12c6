import t from 'tap'
import { createSeal } from '../../src/session/seal.ts'
import { sessionSecret } from '../support/gateway.ts'
import { until } from '../support/until.ts'
import { testRedis } from '../support/redis.ts'
import { profile, replica } from '../support/trial.ts'

const redis = await testRedis(t.after)
const client = redis.client()
const gateway = await replica(t, { url: redis.url, commandTimeout: '20s' })

async function signedIn() {
  await client.flushall()
  const cookie = await gateway.signIn()
  if ((await gateway.status(profile, { cookie })) !== 200) throw new Error('nobody is signed in')
  const [key = ''] = await client.keys('{cg}:s:*')
  return { cookie, key, value: (await client.getBuffer(key)) ?? Buffer.alloc(0) }
}

const sealed =
  (secret = sessionSecret) =>
  (key: string) =>
    `0 ${createSeal([secret]).close(key, { identity: null })}`

type Damage = (key: string, value: Buffer) => Promise<unknown>
const put =
  (made: (key: string, value: Buffer) => string | Buffer): Damage =>
  async (key, value) =>
    await client.set(key, made(key.slice('{cg}:s:'.length), value), 'PX', 600_000)

const damages: Record<string, Damage> = {
  'one bit of it was turned': put((_key, value) => {
    value[40] = (value[40] ?? 0) ^ 1
    return value
  }),
  'it is empty': put(() => ''),
  'it is a megabyte without sense': put(() => 'x'.repeat(1 << 20)),
  'it is JSON that nobody sealed': put(
    () =>
      '0 {"session":{"id":"x","identity":{"id":"1","username":"alice","name":"","roles":["admin"],"profile":{}},"source":"x","address":"","agent":"","createdAt":1,"absoluteEnd":9e15,"idleMs":9e9},"epoch":0}'
  ),
  'it was sealed with a key that nobody knows': put(
    sealed('another secret of at least 32 characters')
  ),
  'it was sealed for another session': put(() => sealed()('another')),
  'it is sealed nonsense': put(sealed()),
  'it is of another type': async key =>
    await client.multi().del(key).lpush(key, 'x').pexpire(key, 600_000).exec(),
  'it has no time to live': async key => await client.persist(key)
}

for (const [what, damage] of Object.entries(damages)) {
  t.test(`a session’s value in Redis: ${what}: 401, no session, no crash`, async t => {
    const { cookie, key, value } = await signedIn()
    await damage(key, value)
    const answers: unknown[] = []
    await until('it is 401', async () => {
      const { status, json } = await gateway.call(profile, { cookie })
      if (status !== 200) answers.push(`${status} ${json.errorCode}`)
      return status === 401
    })
    t.match(answers, [/^401 session.(unknown|absolute)$/], 'and nothing else before')
    t.equal(answers.length, 1)
    t.ok([200, 503].includes(await gateway.status('/api/account/logout', { cookie })))
    t.equal(await gateway.status(profile, { cookie: await gateway.signIn() }), 200)
  })
}

const epoch = '{cg}:s:epoch'
const others: Record<string, () => Promise<unknown>> = {
  'no number': async () => await client.set(epoch, 'x'),
  'of another type': async () => await client.lpush(epoch, 'x')
}

for (const [what, damage] of Object.entries(others)) {
  t.test(`the count of everyone’s sign-outs is ${what}: nobody is out or in by it`, async t => {
    const { cookie } = await signedIn()
    await client.del(epoch)
    await damage()
    for (let n = 0; n < 5; n++) {
      const { status } = await gateway.call(profile, { cookie })
      t.ok([200, 503].includes(status), `${status}`)
    }
    const tried = await gateway.attempt('alice')
    t.match(tried, { status: 503, json: { errorCode: 'session.unavailable' } })
    t.same(tried.headers.getSetCookie(), [])
    await client.del(epoch)
    for (const each of [cookie, await gateway.signIn()]) {
      t.equal(await gateway.status(profile, { cookie: each }), 200)
    }
  })
}

t.end()
