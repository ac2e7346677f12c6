/** The errors of a back-end, in the console's envelope. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { signInAt } from '../support/sign-in.ts'
import { json, testUpstream } from '../support/upstream.ts'

let answer: readonly [status: number, type: string, body: string] = [400, '', '']
const backend = await testUpstream(t.after, (_request, response) => {
  const [status, type, body] = answer
  response.writeHead(status, { 'content-type': type }).end(body)
})
const route = (path: string, upstream: string) => ({ path, access: 'public', upstream })
const gateway = await testGateway(t.after, {
  routes: {
    upstreams: { b: { url: backend.url, errors: 'problem' }, raw: { url: backend.url } },
    routes: {
      plain: route('/plain', 'b'),
      untouched: route('/untouched', 'raw'),
      parts: { path: '/parts', access: 'public', parts: { a: { upstream: 'b', rewrite: '/x' } } }
    }
  }
})

t.test('case U8: `errors` of an upstream holds for routes without a shape', async t => {
  const problem = '{"title":"Out of stock","detail":"Only 3 are left.","status":409}'
  answer = [409, 'application/problem+json', problem]
  const told = { success: false, message: 'Only 3 are left.', errorCode: 'upstream.error' }
  for (const path of ['/plain', '/parts']) {
    t.match(await gateway.call(path), { status: 409, json: told }, path)
  }
  const untouched = await gateway.call('/untouched')
  t.same([untouched.status, untouched.text], [409, problem], 'without the key it passes as it is')
  answer = [200, 'application/json', problem]
  t.equal((await gateway.call('/plain')).text, problem)
})

t.test('a back-end’s error that quotes the session’s token never reaches the browser', async t => {
  const token = 'tok-0123456789abcdef'
  const bodies = new Map([
    ['/message', { message: `Bearer ${token} has expired` }],
    ['/field', { message: 'Not valid.', errors: { auth: [token] } }],
    ['/other', { message: 'Not valid.', errors: { price: ['too low'] } }]
  ])
  const quoting = await testUpstream(t.after, (request, response, seen) => {
    const body = bodies.get(seen.url)
    const isLogin = body === undefined
    json(isLogin ? 200 : 400, body ?? { id: 7, token })(request, response, seen)
  })
  const { gateway: files, routes } = signInAt(quoting.url, { token: 'token' })
  const upstreams = { b: { ...routes.upstreams.b, credential: 'bearer', errors: 'laravel' } }
  const { call, log, signIn } = await testGateway(t.after, {
    gateway: files,
    routes: {
      upstreams,
      routes: { all: { path: '/api/*', rewrite: '/*', upstream: 'b', shape: 'whole' } },
      shapes: { whole: [{ wrap: 'envelope' }] }
    }
  })
  const cookie = await signIn()
  for (const path of ['/api/message', '/api/field']) {
    const called = await call(path, { cookie })
    t.match(called, { status: 400, json: { errorCode: 'upstream.error' } })
    t.notMatch(called.text, token)
    t.match(called.json.message, /^The service behind this page/)
    t.notOk('fieldErrors' in called.json)
  }
  const other = await call('/api/other', { cookie })
  t.match(other.json, { message: 'Not valid.', fieldErrors: { price: ['too low'] } })
  t.notMatch(JSON.stringify(log), token)
})

t.end()
