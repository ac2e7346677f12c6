/** Back-ends that change a session's cookie or token in ordinary responses. */
import { setTimeout as wait } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testRedis } from '../support/redis.ts'
import { testUpstream } from '../support/upstream.ts'

/** Of another path, as a browser would keep it apart (PHP; Express, Rails and ASP.NET). */
const deleted = [
  'SID=deleted; Path=/old; Expires=Thu, 01-Jan-1970 00:00:01 GMT; Max-Age=0',
  'SID=; Path=/old; Expires=Thu, 01 Jan 1970 00:00:00 GMT',
  'SID2=x; Max-Age=0'
]

/** Takes the latest value alone, and makes a new one with each response. */
async function strictBackend(t: Test, credential: 'cookies' | 'bearer') {
  let current = 0
  const byCookie = credential === 'cookies'
  const made = () => {
    current++
    return byCookie
      ? { 'set-cookie': [`SID=s${current}; Path=/; HttpOnly`, 'other=1', ...deleted] }
      : { authorization: `Bearer t${current}` }
  }
  const backend = await testUpstream(t.after, ({ url, headers }, response) => {
    const latest = byCookie ? `SID=s${current}` : `Bearer t${current}`
    const sent = byCookie ? headers.cookie : headers.authorization
    const isKnown = sent === latest || url !== '/api/strict'
    response.writeHead(isKnown ? 200 : 401, { 'content-type': 'application/json', ...made() })
    response.end(`{"id":"1","token":"t${current}"}`)
  })
  return backend
}

const files = (url: string, credential: 'cookies' | 'bearer') => ({
  backend: { url, credential },
  source:
    credential === 'cookies'
      ? { cookies: ['SID', 'SID2'] }
      : { token: 'token', renewedToken: 'authorization' },
  routes: {
    upstreams: { elsewhere: { url, credential: 'none' } },
    routes: {
      strict: {},
      lenient: {},
      elsewhere: { upstream: 'elsewhere' },
      parts: { parts: { all: { upstream: 'b', rewrite: '/api/lenient' } } }
    }
  }
})

for (const credential of ['cookies', 'bearer'] as const) {
  t.test(`case 7: the session takes over what each response renews: ${credential}`, async t => {
    const backend = await strictBackend(t, credential)
    const gateway = await testGateway(t.after, files(backend.url, credential))
    const cookie = await gateway.signIn('anna')
    for (let count = 0; count < 10; count++) {
      const answer = await gateway.call('/api/strict', { cookie })
      t.equal(answer.status, 200, `call ${count}`)
      t.same(answer.headers.getSetCookie(), [], 'the browser gets none of it')
      t.equal(answer.headers.get('authorization'), null)
    }
    await Promise.all(Array.from({ length: 8 }, () => gateway.call('/api/lenient', { cookie })))
    t.equal(await gateway.status('/api/strict', { cookie }), 200, 'of many at once the last one')
    await gateway.call('/api/parts', { cookie })
    t.equal(await gateway.status('/api/strict', { cookie }), 200, 'of a part')
    await gateway.call('/api/elsewhere', { cookie })
    const afterwards = await gateway.call('/api/strict', { cookie })
    t.equal(afterwards.status, 401, 'another upstream changes nothing: its own is unknown here')
    t.equal(await gateway.status('/api/strict', { cookie }), 200, 'an error renews it as well')
  })
}

t.test('case 7: other replicas get to know it', async t => {
  const redis = await testRedis(t.after)
  const backend = await strictBackend(t, 'cookies')
  const shared = { ...files(backend.url, 'cookies'), redis: redis.url }
  const replica = async () => await testGateway(t.after, shared)
  const [here, there] = [await replica(), await replica()]
  const cookie = await here.signIn('anna')
  t.equal(await here.status('/api/strict', { cookie }), 200)
  // The first change is written at once.
  await wait(300)
  t.equal(await there.status('/api/strict', { cookie }), 200)
})
