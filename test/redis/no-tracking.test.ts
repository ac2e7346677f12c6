/** Some clouds, proxies and ACL users refuse CLIENT TRACKING. */
import { connect, createServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { adopt } from '../../src/observability/emitters.ts'
import { redisCli } from '../support/redis-cli.ts'
import { testRedis } from '../support/redis.ts'
import { profile, replicas } from '../support/trial.ts'

/** Longer than several attempts would take. */
const lookMs = 1500

interface Refusing {
  readonly redis: Record<string, unknown>
  /** How often tracking was asked for. */
  readonly asked: () => Promise<number>
}

/** Passes everything on, and CLIENT TRACKING under a name that Redis does not know. */
async function behindProxy(t: Test): Promise<Refusing> {
  const redis = await testRedis(t.after)
  let asked = 0
  const proxy = adopt(
    createServer(incoming => {
      adopt(incoming)
      const outgoing = adopt(connect(redis.port, '127.0.0.1'))
      outgoing.pipe(incoming)
      outgoing.on('close', () => incoming.destroy())
      incoming.on('close', () => outgoing.destroy())
      incoming.on('data', chunk => {
        // Redis refuses another name itself, in the place that its answer has among the others.
        const passed = chunk.toString('latin1').replace(/(?<=\r\n)tracking(?=\r\n)/i, () => {
          asked++
          return 'tracks__'
        })
        outgoing.write(passed, 'latin1')
      })
    })
  )
  t.after(() => proxy.close())
  const port = await new Promise<number>(resolve => {
    proxy.listen(0, '127.0.0.1', () => resolve((proxy.address() as { port: number }).port))
  })
  return { redis: { url: `redis://127.0.0.1:${port}` }, asked: async () => asked }
}

async function byAclUser(t: Test): Promise<Refusing> {
  const { port, url } = await testRedis(t.after)
  const words = ['on', '>secret', '~*', '&*', '+@all', '-client|tracking']
  await redisCli(port, 'ACL', 'SETUSER', 'gateway', ...words)
  const asked = async () =>
    Number(
      /cmdstat_client\|tracking:.*rejected_calls=(\d+)/.exec(
        await redisCli(port, 'INFO', 'commandstats')
      )?.[1]
    )
  return { redis: { url, username: 'gateway', password: '${REDIS_PASSWORD}' }, asked }
}

for (const [name, start] of Object.entries({ 'a proxy': behindProxy, 'an ACL user': byAclUser })) {
  t.test(
    `${name} that refuses CLIENT TRACKING: sessions work, a sign-out is everywhere at once, and one line of the log says what to do`,
    async t => {
      const { redis, asked } = await start(t)
      const [a, b] = await replicas(t, redis, { REDIS_PASSWORD: 'secret' })
      const cookie = await a.signIn()
      for (const gateway of [a, b, a, b]) {
        t.equal((await gateway.call(profile, { cookie })).status, 200)
      }
      await wait(lookMs)
      t.equal(await asked(), 2, 'once by each process')
      t.equal((await b.call('/api/account/logout', { cookie, method: 'POST' })).status, 200)
      for (const gateway of [a, b]) {
        t.equal((await gateway.call(profile, { cookie })).status, 401)
        const said = gateway.log.filter(({ msg }) => String(msg).includes('CLIENT TRACKING'))
        t.equal(said.length, 1)
        t.match(said, [{ level: 'error', msg: /not cached.*"Rights of an ACL user"/ }])
      }
    }
  )
}
