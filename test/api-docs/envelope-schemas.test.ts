import t from 'tap'
import { documentOf } from '../support/document.ts'
import { password, testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

t.test('a success without a data member is described as it is sent', async t => {
  const { url } = await testUpstream(t.after, ({ url: target }, response) => {
    const isThere = target !== '/none'
    response
      .writeHead(isThere ? 200 : 404, { 'content-type': 'application/json' })
      .end(JSON.stringify(isThere ? { list: [{ id: 'a' }], count: 3, page: 1 } : {}))
  })
  const open = { access: 'public', upstream: 'b', rewrite: '/items' }
  const gateway = await testGateway(t.after, {
    gateway: {
      envelope: { dialect: 'custom', custom: { members: { message: 'msg', data: false } } }
    },
    routes: {
      upstreams: { b: { url } },
      routes: {
        list: { ...open, path: '/api/list', shape: 'list' },
        paged: { ...open, path: '/api/paged', shape: 'paged' },
        whole: { ...open, path: '/api/whole', shape: 'whole' },
        ids: { path: '/api/ids', access: 'public', answer: { json: ['a', 'b'] } },
        parts: {
          path: '/api/parts',
          access: 'public',
          shape: 'picked',
          parts: {
            a: { upstream: 'b', rewrite: '/items' },
            n: { upstream: 'b', rewrite: '/none', into: 'x', required: false }
          }
        }
      },
      shapes: {
        list: [{ unwrap: 'list' }, { wrap: 'list' }],
        paged: [{ paging: { list: 'list', total: 'count', current: 'page' } }],
        picked: [{ pick: ['page'] }, { wrap: 'envelope' }],
        whole: [{ wrap: 'envelope' }]
      }
    }
  })
  const { responseOf, call } = await documentOf(gateway)
  const cookie = await gateway.signIn()
  const described = (path: string) =>
    JSON.stringify(responseOf('GET', path, 200)?.['content']['application/json'].schema)
  const bodies = {
    '/api/list': { data: [{ id: 'a' }], total: 1 },
    '/api/paged': { data: [{ id: 'a' }], total: 3, current: 1 },
    '/api/whole': { count: 3 },
    '/api/ids': { data: ['a', 'b'] },
    '/api/parts': { page: 1, missing: ['n'] },
    '/api/session/list': { data: [{}], total: 1 },
    '/api/session': { user: { id: '1' } }
  }
  for (const [path, body] of Object.entries(bodies)) {
    const { status, json, fault } = await call(path, { cookie })
    t.equal(status, 200, path)
    t.match(json, body, path)
    t.equal(fault, undefined, path)
  }
  t.match(described('/api/paged'), '"current":')
  t.match(described('/api/parts'), '"missing":')
  t.match(described('/api/list'), '"total":')
})

t.test('a value that is no object is described under data, also with wrap flat', async t => {
  const { url } = await testUpstream(t.after, (_request, response) => {
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ rows: [{ id: 'a' }], total: 3 }))
  })
  const open = { access: 'public', upstream: 'b' }
  const contract = { schema: { type: 'array', items: { type: 'object', required: ['id'] } } }
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url } },
      routes: {
        list: { ...open, path: '/api/list', shape: 'list' },
        named: { ...open, path: '/api/named', shape: 'list', contract },
        object: { ...open, path: '/api/object', shape: 'object' },
        unknown: { ...open, path: '/api/unknown', shape: 'unknown' },
        problem: { ...open, path: '/api/problem', shape: 'list', dialect: 'problem' },
        counted: { ...open, path: '/api/counted', shape: 'counted', dialect: 'problem' }
      },
      shapes: {
        list: [{ unwrap: 'rows' }, { each: [{ pick: ['id'] }] }, { wrap: 'flat' }],
        object: [{ pick: ['rows', 'total'] }, { wrap: 'flat' }],
        counted: [{ unwrap: 'rows' }, { wrap: 'list' }],
        unknown: [{ unwrap: 'rows' }, { wrap: 'flat' }]
      }
    }
  })
  const { responseOf, call } = await documentOf(gateway)
  const bodies = {
    '/api/list': { ok: true, data: [{ id: 'a' }] },
    '/api/named': { ok: true, data: [{ id: 'a' }] },
    '/api/object': { ok: true, rows: [{ id: 'a' }], total: 3 },
    '/api/unknown': { ok: true, data: [{ id: 'a' }] },
    '/api/problem': [{ id: 'a' }],
    '/api/counted': [{ id: 'a' }]
  }
  for (const [path, body] of Object.entries(bodies)) {
    const { status, json, fault } = await call(path)
    t.equal(status, 200, path)
    t.match(json, body, path)
    t.equal(fault, undefined, path)
  }
  const { content } = responseOf('GET', '/api/list', 200) ?? {}
  t.ok(content['application/json'].schema.required.includes('data'))
})

t.test('the token of a sign-in is described as config has it', async t => {
  const tokenWith = async (envelope: object) => {
    const gateway = await testGateway(t.after, { gateway: { envelope } })
    const json = { username: 'alice', password, type: 'account' }
    const { call } = await documentOf(gateway)
    const { status, fault } = await call('/api/auth/admin/login', { method: 'POST', json })
    t.same([status, fault], [200, undefined])
    return await (await gateway.ops('/openapi.json')).text()
  }
  t.match(await tokenWith({}), '"authToken":{"const":""')
  t.match(await tokenWith({ inertToken: 'tok' }), '"authToken":{"const":"tok"')
})

t.test('the list of missing parts is described in every placement of the value', async t => {
  const { url } = await testUpstream(t.after, ({ url: target }, response) => {
    response
      .writeHead(target === '/none' ? 404 : 200, { 'content-type': 'application/json' })
      .end('{"count":3}')
  })
  const parts = { n: { upstream: 'b', rewrite: '/none', into: 'x', required: false } }
  const route = { access: 'public', upstream: 'b', rewrite: '/one', methods: ['GET'], parts }
  const profile = { from: 'upstream', upstream: 'b', rewrite: '/user', inEnvelope: 'flat', parts }
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { b: { url } },
      endpoints: { profile },
      routes: {
        flat: { ...route, path: '/api/flat', shape: 'flat' },
        bare: { ...route, path: '/api/bare', shape: 'bare' },
        wrapped: { ...route, path: '/api/wrapped', shape: 'wrapped' },
        problem: { ...route, path: '/api/problem', shape: 'wrapped', dialect: 'problem' }
      },
      shapes: {
        flat: [{ pick: ['count'] }, { wrap: 'flat' }],
        bare: [{ pick: ['count'] }],
        wrapped: [{ pick: ['count'] }, { wrap: 'envelope' }]
      }
    }
  })
  const { responseOf, call } = await documentOf(gateway)
  const cookie = await gateway.signIn()
  for (const path of ['flat', 'bare', 'wrapped', 'problem', 'account/profile']) {
    const { status, json, fault } = await call(`/api/${path}`, { cookie })
    t.match({ status, json, fault }, { status: 200, json: { missing: ['n'] }, fault: undefined })
    const schema = responseOf('GET', `/api/${path}`, 200)?.['content']['application/json'].schema
    t.match(JSON.stringify(schema), '"missing":{"type":"array"', path)
  }
})
