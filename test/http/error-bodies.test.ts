/** The errors of a back-end, in the console's envelope. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

let answer: readonly [status: number, type: string, body: string] = [400, '', '']
const backend = await testUpstream(t.after, (_request, response) => {
  const [status, type, body] = answer
  response.writeHead(status, { 'content-type': type }).end(body)
})
const gateway = await testGateway(t.after, {
  routes: {
    upstreams: { b: { url: backend.url, errors: 'problem' }, raw: { url: backend.url } },
    routes: {
      plain: { path: '/plain', access: 'public', upstream: 'b' },
      untouched: { path: '/untouched', access: 'public', upstream: 'raw' }
    }
  }
})

t.test('case U8: `errors` of an upstream holds for routes without a shape', async t => {
  const problem = '{"title":"Out of stock","detail":"Only 3 are left.","status":409}'
  answer = [409, 'application/problem+json', problem]
  t.match(await gateway.call('/plain'), {
    status: 409,
    json: { success: false, message: 'Only 3 are left.', errorCode: 'upstream.error' }
  })
  const untouched = await gateway.call('/untouched')
  t.same([untouched.status, untouched.text], [409, problem], 'without the key it passes as it is')
  answer = [200, 'application/json', problem]
  t.equal((await gateway.call('/plain')).text, problem)
})

t.end()
