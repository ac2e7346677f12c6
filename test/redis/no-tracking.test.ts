import { setTimeout as wait } from 'node:timers/promises'
import t from 'tap'
import { redisCli } from '../support/redis-cli.ts'
import { testRedis } from '../support/redis.ts'
import { profile, replicas } from '../support/trial.ts'

/** Longer than several attempts would take. */
const lookMs = 1500

t.test(
  'where CLIENT TRACKING is refused sessions work, a sign-out is everywhere at once, and one line of the log says what to do',
  async t => {
    const { port, url } = await testRedis(t.after)
    const words = ['on', '>secret', '~*', '&*', '+@all', '-client|tracking']
    await redisCli(port, 'ACL', 'SETUSER', 'gateway', ...words)
    const redis = { url, username: 'gateway', password: '${REDIS_PASSWORD}' }
    const [a, b] = await replicas(t, redis, { REDIS_PASSWORD: 'secret' })
    const cookie = await a.signIn()
    for (const gateway of [a, b, a, b]) {
      t.equal((await gateway.call(profile, { cookie })).status, 200)
    }
    await wait(lookMs)
    const stats = await redisCli(port, 'INFO', 'commandstats')
    t.match(stats, /cmdstat_client\|tracking:.*rejected_calls=2,/, 'once by each process')
    t.equal((await b.call('/api/account/logout', { cookie, method: 'POST' })).status, 200)
    for (const gateway of [a, b]) {
      t.equal((await gateway.call(profile, { cookie })).status, 401)
      const said = gateway.log.filter(({ msg }) => String(msg).includes('CLIENT TRACKING'))
      t.equal(said.length, 1)
      t.match(said, [{ level: 'error', msg: /not cached.*"Rights of an ACL user"/ }])
    }
  }
)
