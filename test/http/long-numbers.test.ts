/** Numbers that no double holds have no members, whatever they are to JavaScript. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

t.test('case R3: no path of a shape leads into a number', async t => {
  const backend = await testUpstream(t.after, (_request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end('{"id":1234567890123456789,"list":[{"id":1234567890123456789}]}')
  })
  const route = { upstream: 'b', access: 'public' }
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        unwrapped: { ...route, path: '/api/unwrapped', shape: 'unwrapped' },
        lifted: { ...route, path: '/api/lifted', shape: 'lifted' },
        whole: { ...route, path: '/api/whole', shape: 'whole' }
      },
      shapes: {
        unwrapped: [{ unwrap: 'id.rawJSON' }],
        lifted: [{ unwrap: 'list' }, { each: [{ lift: 'id' }] }],
        whole: [{ pick: ['id'] }]
      }
    }
  })
  t.equal((await gateway.call('/api/unwrapped')).text, 'null')
  t.notMatch((await gateway.call('/api/lifted')).text, 'rawJSON')
  t.equal((await gateway.call('/api/whole')).text, '{"id":1234567890123456789}')
})
