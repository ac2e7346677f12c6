/** An event loop that is late: refused at once is who would only wait. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { until } from '../support/until.ts'

const gateway = await testGateway(t.teardown)
const cookie = await gateway.signIn()
const profile = '/api/account/profile'
const still = new Int32Array(new SharedArrayBuffer(4))

/** Each turn of the event loop takes so long, until the work is done. */
async function whileLate<T>(ms: number, work: () => Promise<T>): Promise<T> {
  let isOver = false
  const turn = () => {
    Atomics.wait(still, 0, 0, ms)
    if (!isOver) setImmediate(turn)
  }
  turn()
  try {
    return await work()
  } finally {
    isOver = true
  }
}

t.test('beyond a second only users who are signed in are answered, and probes', async t => {
  await whileLate(1300, async () => {
    await until('others are refused', async () => {
      const refused = await gateway.call('/api/nothing')
      if (refused.status !== 503) return false
      t.match(refused.json, { errorCode: 'overloaded', requestId: String })
      t.equal(refused.headers.get('retry-after'), '1')
      return true
    })
    const forged = cookie.replace(/.$/, last => (last === 'a' ? 'b' : 'a'))
    t.equal((await gateway.call(profile, { cookie: forged })).status, 503, 'a forged cookie')
    t.equal((await gateway.call(profile, { cookie })).status, 200)
    t.equal((await gateway.ops('/readyz')).status, 200)
  })
  t.match(await gateway.logged(({ event }) => event === 'requests.shed'), {
    reason: 'eventLoop'
  })
  await until('all are answered', async () => (await gateway.call('/api/nothing')).status === 404)
})
