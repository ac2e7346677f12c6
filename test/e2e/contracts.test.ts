import { gzipSync } from 'node:zlib'
import t from 'tap'
import { stopClock } from '../support/clock.ts'
import { testGateway, type TestGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

const file = 'contract.json'
/** The file of a contract. */
const codeOf = (schema: object) => ({ [file]: JSON.stringify(schema) })
const code = codeOf({
  type: 'array',
  items: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } }
})

/** A back-end whose items are what `answer` holds at the time. */
const setUp = async (
  cleanUp: (undo: () => unknown) => void,
  contract: object,
  shape: object[] = [{ unwrap: 'items' }, { wrap: 'list' }]
) => {
  const answer = { items: [{ id: 'a' }] as unknown[] }
  const backend = await testUpstream(cleanUp, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  const gateway = await testGateway(cleanUp, {
    code,
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        r: {
          path: '/api/r',
          access: 'public',
          upstream: 'b',
          shape: 's',
          contract: { file, ...contract }
        }
      },
      shapes: { s: shape }
    }
  })
  return { gateway, answer }
}
const drifts = ({ log }: TestGateway) =>
  log
    .filter(({ event }) => String(event).startsWith('contract.'))
    .map(({ event, route, path, kind }) => [event, route, path, kind].join(' '))

t.test(
  'an observed answer passes as it is; what differs is logged once, without values',
  async t => {
    const pass = stopClock(t.after)
    const { gateway, answer } = await setUp(t.after, {})
    t.match(await gateway.call('/api/r'), { status: 200, json: { data: [{ id: 'a' }] } })
    t.same(drifts(gateway), [])
    // The first look compiles the schema, and the next one is a hundred times as long after it.
    pass(60_000)
    answer.items = [{ id: 17, note: 'private words' }]
    for (let index = 0; index < 3; index++) {
      t.match(await gateway.call('/api/r'), { status: 200, json: { data: [{ id: 17 }] } })
    }
    // The next answer comes after those before it were looked at.
    await gateway.call('/api/r')
    t.same(drifts(gateway), ['contract.drift r [].id retyped', 'contract.drift r [].note new'])
    t.notMatch(JSON.stringify(gateway.log), 'private words')
  }
)

t.test(
  'a strict contract turns an answer that breaks it into 502, and says where in the log alone',
  async t => {
    const { gateway, answer } = await setUp(t.after, { mode: 'strict' })
    t.match(await gateway.call('/api/r'), { status: 200, json: { total: 1 } })
    answer.items = [{ id: 'a', note: 'private words' }]
    t.equal((await gateway.call('/api/r')).status, 200, 'a new member breaks nothing')
    answer.items = [{ note: 'private words' }]
    const broken = await gateway.call('/api/r')
    t.match(broken, {
      status: 502,
      json: { success: false, errorCode: 'contract.broken', requestId: String }
    })
    t.notMatch(broken.text, '[].id')
    t.match(
      gateway.log.find(({ code }) => code === 'contract.broken'),
      { route: 'r', reason: 'missing: [].id' }
    )
    t.notMatch(JSON.stringify(gateway.log), 'private words')
  }
)

t.test('without an envelope the contract is about the whole answer', async t => {
  const { gateway, answer } = await setUp(t.after, { mode: 'strict' }, [{ unwrap: 'items' }])
  t.same((await gateway.call('/api/r')).json, [{ id: 'a' }])
  answer.items = [1]
  t.equal((await gateway.call('/api/r')).status, 502)
  const off = await setUp(t.after, { mode: 'off' })
  off.answer.items = [1, 2]
  t.equal((await off.gateway.call('/api/r')).status, 200, '`off` holds nothing against it')
})

t.test('what passes byte for byte is observed too, compressed or not', async t => {
  const bodies: Record<string, Buffer> = {
    plain: Buffer.from('[{"id": 17}]  '),
    gzip: gzipSync('[{"id":"a","fresh":1}]'),
    broken: Buffer.from('[')
  }
  const backend = await testUpstream(t.after, ({ url = '' }, response) => {
    const which = url.slice(1)
    response
      .writeHead(which === 'plain' ? 201 : 200, {
        'content-type': 'application/json',
        ...(which === 'gzip' && { 'content-encoding': 'gzip' })
      })
      .end(bodies[which])
  })
  const pass = stopClock(t.after)
  const gateway = await testGateway(t.after, {
    code,
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        r: {
          path: '/api/r/*',
          rewrite: '/*',
          access: 'public',
          upstream: 'b',
          contract: { file }
        }
      }
    }
  })
  t.match(await gateway.call('/api/r/plain'), { status: 201, text: '[{"id": 17}]  ' })
  pass(60_000)
  t.match(await gateway.call('/api/r/gzip'), { status: 200, json: [{ id: 'a' }] })
  pass(60_000)
  t.equal((await gateway.call('/api/r/broken')).text, '[')
  await gateway.call('/api/r/gzip')
  t.same(drifts(gateway), [
    'contract.drift r [].id retyped',
    'contract.drift r [].fresh new',
    'contract.drift r (all) invalid'
  ])
})

t.test('the current user has a contract as well, whoever answers it', async t => {
  const contract = { file, mode: 'strict' }
  const ofUser = codeOf({ type: 'object', required: ['email', 'phone'] })
  const own = await testGateway(t.after, {
    code: ofUser,
    routes: { endpoints: { profile: { contract } } }
  })
  t.match(await own.call('/api/account/profile', { cookie: await own.signIn() }), {
    status: 502,
    json: { errorCode: 'contract.broken' }
  })
  const backend = await testUpstream(t.after, (request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        email: 'a@example.com',
        ...(request.headers['x-user-id'] === '1' && { phone: '1' })
      })
    )
  })
  const proxied = await testGateway(t.after, {
    code: ofUser,
    routes: {
      upstreams: { b: { url: backend.url } },
      endpoints: { profile: { upstream: 'b', contract } }
    }
  })
  t.match(await proxied.call('/api/account/profile', { cookie: await proxied.signIn('alice') }), {
    status: 200,
    json: { data: { username: 'alice', phone: '1' } }
  })
  t.equal(
    (await proxied.call('/api/account/profile', { cookie: await proxied.signIn('bob') })).status,
    502
  )
})

t.test('a route with parts keeps a strict contract without a shape, too', async t => {
  const answer: Record<string, unknown> = { count: 7 }
  const backend = await testUpstream(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  const contract = { file, mode: 'strict' }
  const parts = { n: { upstream: 'b', rewrite: '/n', shape: 'count', into: 'n' } }
  const common = { access: 'public', parts, contract }
  const gateway = await testGateway(t.after, {
    code: codeOf({ properties: { n: { type: 'integer' } } }),
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: {
        proxied: { path: '/api/p', upstream: 'b', ...common },
        aggregated: { path: '/api/a', ...common }
      },
      shapes: { count: [{ unwrap: 'count' }] }
    }
  })
  for (const path of ['/api/p', '/api/a']) {
    answer['count'] = 7
    t.match(await gateway.call(path), { status: 200, json: { n: 7 } })
    answer['count'] = 'seven'
    t.match(await gateway.call(path), { status: 502, json: { errorCode: 'contract.broken' } })
  }
})
