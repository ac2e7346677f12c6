/** The errors of a back-end, in the console's envelope. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

const token = 'tok-0123456789abcdef'
const problem = { title: 'Out of stock', detail: 'Only 3 are left.', status: 409 }
/** As `http.Error` of Go calls JSON. */
const text = { 'content-type': 'text/plain; charset=utf-8' }
const answers: Readonly<Record<string, readonly [status: number, body: object]>> = {
  '/login': [200, { id: 7, token }],
  '/problem': [409, problem],
  '/fine': [200, problem],
  '/message': [400, { message: `Bearer ${token} has expired` }],
  '/field': [400, { message: 'Not valid.', errors: { auth: [token] } }],
  '/other': [400, { message: 'Not valid.', errors: { price: ['too low'] } }]
}
const { url } = await testUpstream(t.teardown, (request, response, seen) => {
  if (seen.url === '/text') {
    return void response.writeHead(409, text).end(JSON.stringify(problem))
  }
  json(...(answers[seen.url] ?? [404, {}]))(request, response, seen)
})
const rewritten = (name: string) => ({ path: `/${name}/*`, rewrite: '/*' })
const gateway = await testGateway(t.teardown, {
  backend: { url, credential: 'bearer', errors: 'laravel' },
  source: { token: 'token' },
  routes: {
    upstreams: { c: { url, errors: 'problem' }, raw: { url } },
    routes: {
      shaped: { ...rewritten('shaped'), shape: 'whole' },
      parts: { access: 'public', parts: { a: { upstream: 'c', rewrite: '/problem' } } },
      plain: { ...rewritten('plain'), upstream: 'c', access: 'public' },
      usual: { ...rewritten('usual'), upstream: 'raw', access: 'public', shape: 'whole' },
      untouched: { ...rewritten('untouched'), upstream: 'raw', access: 'public' }
    },
    shapes: { whole: [{ wrap: 'envelope' }] }
  }
})

t.test('case U8: `errors` of an upstream holds for routes without a shape', async t => {
  const told = { success: false, message: 'Only 3 are left.', errorCode: 'upstream.error' }
  // Without the key a shaped route takes the usual members: FastAPI and Spring say `detail`.
  for (const path of ['/plain/problem', '/plain/text', '/api/parts', '/usual/problem']) {
    t.match(await gateway.call(path), { status: 409, json: told }, path)
  }
  const untouched = await gateway.call('/untouched/problem')
  t.same([untouched.status, untouched.json], [409, problem], 'without the key it passes as it is')
  t.same((await gateway.call('/plain/fine')).json, problem)
})

t.test('a back-end’s error that quotes the session’s token never reaches the browser', async t => {
  const cookie = await gateway.signIn()
  for (const path of ['/shaped/message', '/shaped/field']) {
    const called = await gateway.call(path, { cookie })
    t.match(called, { status: 400, json: { errorCode: 'upstream.error' } })
    t.notMatch(called.text, token)
    t.match(called.json.message, /^The service behind this page/)
    t.notOk('fieldErrors' in called.json)
  }
  const other = await gateway.call('/shaped/other', { cookie })
  t.match(other.json, { message: 'Not valid.', fieldErrors: { price: ['too low'] } })
  t.notMatch(JSON.stringify(gateway.log), token)
})
