/** A console on another origin: it calls, signs in and reads every answer, refusals too; no other page does. */
import t from 'tap'
import { password, testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'
import { isEnvelope, loginPath, wireRoutes } from '../support/wire.ts'

const origin = 'https://console.example.com'
const backend = await testUpstream(t.teardown)
const gateway = await testGateway(t.teardown, {
  gateway: { server: { origins: [origin], exposeHeaders: ['x-next-page'] } },
  routes: wireRoutes(backend.url),
  limits: {
    sizes: { body: '1KiB', url: '1KiB' },
    limits: { strangers: { by: 'address', max: 100, window: '1h' } }
  }
})
const cookie = await gateway.signIn()
const right = { json: { username: 'alice', password } }
const thing = '/api/things/1'
const browser = { origin, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' }
const wanted = { 'access-control-request-method': 'PUT' }
const ask = async (path: string, headers: Record<string, string> = {}) =>
  await gateway.call(path, { method: 'OPTIONS', headers })
const allowed = 'access-control-allow-origin'
const allowing = { [allowed]: origin, 'access-control-allow-credentials': 'true' }

for (const [what, path, status, init = {}] of [
  ['a body that is too large', '/api/open/x', 413, { method: 'POST', body: 'x'.repeat(3000) }],
  ['a target that is too long', `/api/open/x?${'x'.repeat(1200)}`, 414],
  ['a path that cannot be decoded', '/api/%E7', 400],
  ['no session', '/api/account/profile', 401],
  ['nothing there', '/api/none', 404],
  ['a success', thing, 200, { json: {}, cookie }],
  ['a sign-in', loginPath, 200, right],
  ['OPTIONS that is no preflight', '/api/notices', 405, { method: 'OPTIONS' }]
] as const) {
  t.test(`cases 10, 11: the page can read the answer: ${what}`, async t => {
    const answer = await gateway.call(path, { ...init, headers: browser })
    t.equal(answer.status, status)
    t.match(Object.fromEntries(answer.headers), { ...allowing, vary: /origin/i })
    const exposed = answer.headers.get('access-control-expose-headers')?.split(/,\s*/) ?? []
    const files = ['content-disposition', 'content-range', 'etag', 'x-total-count']
    const expected = [...files, 'x-request-id', 'x-next-page']
    const names = new Set(exposed.map(name => name.toLowerCase()))
    t.equal(expected.filter(name => !names.has(name)).join(), '')
    const evil = await gateway.call(path, { ...init, headers: { origin: 'https://evil.example' } })
    t.notMatch(evil.headers.get(allowed), /evil|\*/)
  })
}

t.test('it may send the methods and headers that it asks for', async t => {
  const asked = 'content-type,x-anything'
  const { status, headers } = await ask(thing, {
    ...browser,
    ...wanted,
    'access-control-request-headers': asked
  })
  t.equal(status, 204)
  t.match(Object.fromEntries(headers), {
    ...allowing,
    'access-control-allow-headers': asked,
    'access-control-allow-methods': /PUT/,
    'vary': /origin/i
  })
  t.notMatch([...headers].join('\n'), /\*/)
})

t.test('no other origin may, however close it comes', async t => {
  for (const [referer, status] of [
    [origin, 200],
    [`${origin}/orders?page=2`, 200],
    [`${origin}.evil.example/`, 403],
    [`${origin}:8443/`, 403]
  ] as const) {
    const call = await gateway.call(thing, { json: {}, cookie, headers: { referer } })
    t.equal(call.status, status, referer)
  }
  const before = backend.begun()
  for (const other of [
    ...['https://evil.example', 'http://console.example.com', 'https://x.console.example.com'],
    ...[`${origin}.evil.example`, `${origin}:444`, `${origin}/`, 'null'],
    `${origin}, https://evil.example`
  ]) {
    const headers = { ...browser, origin: other }
    const called = await gateway.call(thing, { json: {}, cookie, headers })
    const signedIn = await gateway.call(loginPath, { ...right, headers })
    t.same([called.status, signedIn.status], [403, 403], other)
    const preflight = await ask(thing, { ...headers, ...wanted })
    for (const answer of [called, signedIn, preflight]) {
      t.notOk([other, '*'].includes(answer.headers.get(allowed) ?? ''), other)
    }
  }
  t.equal(backend.begun(), before)
})

t.test('OPTIONS that is no preflight is answered as any method that is not there', async t => {
  const known = await ask('/api/notices')
  t.match(known, { status: 405, json: { errorCode: 'route.method' } })
  t.equal(known.headers.get('allow'), 'GET, HEAD')
  isEnvelope(t, known.text)
  t.equal((await ask(thing, wanted)).status, 405, 'without Origin')
  let status = 0
  for (let n = 0; n < 100 && status !== 429; n++) ({ status } = await ask('/api/nothing'))
  t.equal(status, 429, 'limits count them')
})
