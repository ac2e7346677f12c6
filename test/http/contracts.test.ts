/** What a route’s answer has to be, and what becomes of one that is not. */
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { stopClock } from '../support/clock.ts'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

const bodies: Record<string, unknown> = {
  '/raw/plain': '[{"id": 17}]  ',
  '/raw/gzip': gzipSync('[{"id":"a","fresh":1}]'),
  '/raw/broken': '['
}
const backend = await testUpstream(t.teardown, (request, response, { url }) => {
  const phone = request.headers['x-user-id'] === '1' ? { phone: '1' } : {}
  const body = url === '/me' ? { email: 'a@example.com', ...phone } : (bodies[url] ?? {})
  const coding = url.endsWith('gzip') ? { 'content-encoding': 'gzip' } : {}
  response
    .writeHead(url.endsWith('plain') ? 201 : 200, { 'content-type': 'application/json', ...coding })
    .end(url.startsWith('/raw/') ? body : JSON.stringify(body))
})

const pass = stopClock(t.teardown)
const strict = { mode: 'strict' }
const route = (path: string, contract: object, more: object = {}) => ({
  path: `/api${path}`,
  rewrite: path,
  access: 'public',
  contract: { file: 'items.json', ...contract },
  ...more
})
const parts = { n: { upstream: 'b', rewrite: '/n', shape: 'count', into: 'n' } }
const { rewrite: _nowhere, ...aggregated } = route('/aggregated', {})
const files = {
  code: {
    'items.json': JSON.stringify({
      type: 'array',
      items: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } }
    }),
    'count.json': '{"properties":{"n":{"type":"integer"}}}',
    'user.json': '{"type":"object","required":["email","phone"]}'
  },
  backend: backend.url,
  routes: {
    endpoints: { profile: { contract: { file: 'user.json', ...strict } } as object },
    routes: {
      observed: route('/observed', {}, { shape: 'list' }),
      strict: route('/strict', strict, { shape: 'list' }),
      bare: route('/bare', strict, { shape: 'items' }),
      raw: route('/raw/*', {}),
      proxied: route('/proxied', { file: 'count.json', ...strict }, { upstream: 'b', parts }),
      aggregated: { ...aggregated, contract: { file: 'count.json', ...strict }, parts }
    },
    shapes: {
      list: [{ unwrap: 'items' }, { wrap: 'list' }],
      items: [{ unwrap: 'items' }],
      count: [{ unwrap: 'count' }]
    }
  }
}
const gateway = await testGateway(t.teardown, files)

const drifts = (name: string) =>
  gateway.log
    .filter(({ event, route: of }) => String(event).startsWith('contract.') && of === name)
    .map(({ event, path, kind }) => [event, path, kind].join(' '))

t.test('an observed answer passes; what differs is logged once, without values', async t => {
  const ask = async (id: unknown, more = {}) => {
    bodies['/observed'] = { items: [{ id, ...more }] }
    const answer = await gateway.call('/api/observed')
    t.match(answer, { status: 200, json: { data: [{ id }] } })
  }
  await ask('a')
  t.same(drifts('observed'), [])
  // The first look compiles the schema, and the next one is a hundred times as long after it.
  pass(60_000)
  // The next answer comes after those before it were looked at.
  for (let index = 0; index < 4; index++) await ask(17, { note: 'private words' })
  t.same(drifts('observed'), ['contract.drift [].id retyped', 'contract.drift [].note new'])
  t.notMatch(JSON.stringify(gateway.log), 'private words')
})

t.test('an answer that breaks a strict contract is 502, and the log says where', async t => {
  const ask = async (...items: unknown[]) => {
    bodies['/strict'] = { items }
    return await gateway.call('/api/strict')
  }
  t.match(await ask({ id: 'a' }), { status: 200, json: { total: 1 } })
  t.equal((await ask({ id: 'a', note: 1 })).status, 200, 'a new member breaks nothing')
  const broken = await ask({ note: 'private words' })
  t.match(broken, {
    status: 502,
    json: { success: false, errorCode: 'contract.broken', requestId: String }
  })
  t.notMatch(broken.text, '[].id')
  const line = gateway.log.find(({ code }) => code === 'contract.broken')
  t.match(line, { route: 'strict', reason: 'missing: [].id' })
  t.notMatch(JSON.stringify(gateway.log), 'private words')
})

t.test('without an envelope the contract is about the whole answer', async t => {
  bodies['/bare'] = { items: [{ id: 'a' }] }
  t.same((await gateway.call('/api/bare')).json, [{ id: 'a' }])
  bodies['/bare'] = { items: [1] }
  t.equal(await gateway.status('/api/bare'), 502)
})

t.test('what passes byte for byte is observed too, compressed or not', async t => {
  t.match(await gateway.call('/api/raw/plain'), { status: 201, text: '[{"id": 17}]  ' })
  pass(60_000)
  t.match(await gateway.call('/api/raw/gzip'), { status: 200, json: [{ id: 'a' }] })
  pass(60_000)
  t.equal((await gateway.call('/api/raw/broken')).text, '[')
  await gateway.call('/api/raw/gzip')
  t.same(drifts('raw'), [
    'contract.drift [].id retyped',
    'contract.drift [].fresh new',
    'contract.drift (all) invalid'
  ])
})

t.test('the current user has a contract as well, whoever answers it', async t => {
  const broken = { status: 502, json: { errorCode: 'contract.broken' } }
  const ask = async (asked: typeof gateway, name: string) =>
    await asked.call('/api/account/profile', { cookie: await asked.signIn(name) })
  t.match(await ask(gateway, 'alice'), broken)
  const profile = { upstream: 'b', rewrite: '/me', ...files.routes.endpoints.profile }
  const routes = { ...files.routes, endpoints: { profile } }
  const proxied = await testGateway(t.after, { ...files, routes })
  const data = { username: 'alice', phone: '1' }
  t.match(await ask(proxied, 'alice'), { status: 200, json: { data } })
  t.match(await ask(proxied, 'bob'), broken)
})

for (const path of ['/api/proxied', '/api/aggregated']) {
  t.test(`an answer of parts has a strict contract without a shape: ${path}`, async t => {
    bodies['/n'] = { count: 7 }
    t.match(await gateway.call(path), { status: 200, json: { n: 7 } })
    bodies['/n'] = { count: 'seven' }
    t.match(await gateway.call(path), { status: 502, json: { errorCode: 'contract.broken' } })
  })
}
