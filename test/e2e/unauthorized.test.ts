/** Which 401 means that the person is signed out, and which is a back-end's own word. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

t.test(
  'only a 401 with a session code means signed out: a back-end’s own 401 has none, and the session goes on',
  async t => {
    const backend = await testUpstream(t.after, json(401, { message: 'no such licence' }))
    const gateway = await testGateway(t.after, {
      routes: {
        upstreams: { b: { url: backend.url } },
        routes: {
          passed: { path: '/api/passed', upstream: 'b' },
          shaped: { path: '/api/shaped', upstream: 'b', shape: 's' }
        },
        shapes: { s: [{ wrap: 'list' }] }
      }
    })
    const cookie = await gateway.signIn()
    const passed = await gateway.call('/api/passed', { cookie })
    t.equal(passed.status, 401)
    t.same(passed.json, { message: 'no such licence' })
    t.ok(passed.headers.get('x-session-idle-in'), 'what the session has left is told')
    t.match(await gateway.call('/api/shaped', { cookie }), {
      status: 401,
      json: { errorCode: 'upstream.error', showType: 2 }
    })
    t.equal((await gateway.call('/api/account/profile', { cookie })).status, 200)
    for (const path of ['/api/passed', '/api/shaped']) {
      const signedOut = await gateway.call(path)
      t.match(signedOut, { status: 401, json: { errorCode: /^session\./, showType: 9 } })
      t.notOk(signedOut.headers.get('x-session-idle-in'))
    }
  }
)
