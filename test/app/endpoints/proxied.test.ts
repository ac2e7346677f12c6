import { createHash, randomBytes } from 'node:crypto'
import t from 'tap'
import { testGateway } from '../../support/gateway.ts'
import { json, testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'

const routesTo = (
  url: string,
  routes: Record<string, unknown>,
  more: Record<string, unknown> = {}
) => ({ upstreams: { backend: { url } }, routes, ...more })

t.test('notices need a session, carry the identity, and become a notice list', async t => {
  const backend = await testUpstream(
    t.after,
    json(200, {
      code: 0,
      result: { list: [{ noticeId: 'n1', subject: 'Hello', secret: 'x' }], count: 1 }
    })
  )
  const gateway = await testGateway(t.after, {
    routes: routesTo(
      backend.url,
      {
        notices: {
          path: '/api/notices',
          upstream: 'backend',
          rewrite: '/internal/notices',
          shape: 'notices'
        }
      },
      {
        shapes: {
          notices: [
            { unwrap: 'result.list' },
            {
              each: [
                { rename: { noticeId: 'id', subject: 'title' } },
                { default: { type: 'notification', read: false } },
                { pick: ['id', 'title', 'type', 'read'] }
              ]
            },
            { wrap: 'list' }
          ]
        }
      }
    )
  })
  t.match(await gateway.call('/api/notices'), { status: 401, json: { errorCode: 'session.none' } })
  t.equal(backend.begun(), 0, 'nothing reached the upstream')
  const cookie = await gateway.signIn('bob')
  const answer = await gateway.call('/api/notices?page=1&q=a%20b', { cookie })
  t.same(answer.json, {
    ok: true,
    code: 0,
    message: 'OK',
    success: true,
    data: [{ id: 'n1', title: 'Hello', type: 'notification', read: false }],
    total: 1
  })
  t.match(backend.seen[0], {
    url: '/internal/notices?page=1&q=a%20b',
    headers: {
      'x-user-id': '2',
      'x-user-name': 'bob',
      'x-user-roles': 'user',
      'accept-encoding': 'identity'
    }
  })
  t.notOk(backend.seen[0]?.headers.cookie, 'our cookie stays here')
})

t.test('an unshaped answer passes untouched, byte for byte, whatever its size', async t => {
  for (const size of [0, 1, 700, 64 * 1024, 64 * 1024 + 1, 3_000_000]) {
    const bytes = randomBytes(size)
    const backend = await testUpstream(t.after, (_request, response) => {
      response
        .writeHead(200, { 'content-type': 'application/octet-stream', 'etag': '"e"' })
        .end(bytes)
    })
    const gateway = await testGateway(t.after, {
      routes: routesTo(backend.url, {
        file: { path: '/api/file', access: 'public', upstream: 'backend' }
      })
    })
    const answer = await fetch(`${gateway.url}/api/file`)
    t.equal(
      createHash('sha1')
        .update(new Uint8Array(await answer.arrayBuffer()))
        .digest('hex'),
      createHash('sha1').update(bytes).digest('hex'),
      `${size} bytes`
    )
    t.equal(answer.headers.get('etag'), '"e"')
    t.equal(answer.headers.get('content-type'), 'application/octet-stream')
  }
})

t.test('an answer of unknown length is sent on as it comes', async t => {
  let more = () => {}
  const backend = await testUpstream(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' })
    response.write('{"first":1}\n')
    more = () => response.end('{"second":2}\n')
  })
  const gateway = await testGateway(t.after, {
    routes: routesTo(backend.url, {
      log: { path: '/api/log', access: 'public', upstream: 'backend' }
    })
  })
  const answer = await fetch(`${gateway.url}/api/log`)
  const reader = answer.body?.getReader()
  t.equal(
    Buffer.from((await reader?.read())?.value ?? []).toString(),
    '{"first":1}\n',
    'before the upstream has finished'
  )
  more()
  t.equal(Buffer.from((await reader?.read())?.value ?? []).toString(), '{"second":2}\n')
})

t.test('server-sent events are never held back', async t => {
  const backend = await testUpstream(t.after, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
  })
  const gateway = await testGateway(t.after, {
    routes: routesTo(backend.url, {
      events: { path: '/api/events', access: 'public', upstream: 'backend' }
    })
  })
  const abort = new AbortController()
  const answer = await fetch(`${gateway.url}/api/events`, { signal: abort.signal })
  t.equal(answer.headers.get('content-type'), 'text/event-stream')
  abort.abort()
  await backend.aborted()
  t.pass('the upstream is let go when the client leaves')
})

t.test('a path with * keeps what stands there, at the upstream’s base and rewrite', async t => {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, {
    routes: routesTo(`${backend.url}/base`, {
      files: {
        path: '/api/files/*',
        access: 'public',
        upstream: 'backend',
        rewrite: '/v2/store/*'
      },
      plain: { path: '/api/plain', access: 'public', upstream: 'backend' }
    })
  })
  await gateway.call('/api/files/a/b%20c?x=1&x=2')
  await gateway.call('/api/plain')
  t.same(
    backend.seen.map(({ url }) => url),
    ['/base/v2/store/a/b%20c?x=1&x=2', '/base/api/plain']
  )
})

t.test(
  'a mount prefix stands before every public path, and before none at the upstream',
  async t => {
    const backend = await testUpstream(t.after)
    const gateway = await testGateway(t.after, {
      gateway: { server: { mount: '/console-x' } },
      routes: routesTo(backend.url, {
        files: { path: '/api/files/*', access: 'public', upstream: 'backend' }
      })
    })
    t.equal((await gateway.call('/console-x/api/files/a')).status, 200)
    t.equal(backend.seen[0]?.url, '/api/files/a')
    t.equal((await gateway.call('/api/files/a')).status, 404)
  }
)

t.test('HEAD comes with GET; its length is told and its connection kept', async t => {
  const backend = await testUpstream(t.after, (request, response) => {
    response
      .writeHead(200, { 'content-type': 'text/plain', 'content-length': '100000' })
      .end(request.method === 'HEAD' ? undefined : 'x'.repeat(100_000))
  })
  const gateway = await testGateway(t.after, {
    routes: routesTo(backend.url, {
      file: { path: '/api/file', access: 'public', upstream: 'backend' }
    })
  })
  const answer = await gateway.call('/api/file', { method: 'HEAD' })
  t.match(answer, { status: 200, text: '' })
  t.equal(answer.headers.get('content-length'), '100000')
})

t.test('statuses without a body stay so', async t => {
  const backend = await testUpstream(t.after, (request, response) => {
    response.writeHead(Number(request.url?.slice(-3)), { etag: '"1"' }).end()
  })
  const gateway = await testGateway(t.after, {
    routes: routesTo(backend.url, {
      any: { path: '/api/any/*', access: 'public', upstream: 'backend' }
    })
  })
  for (const status of [204, 304]) {
    t.match(await gateway.call(`/api/any/${status}`), { status, text: '' })
  }
})

t.test(
  'an upstream’s JSON error passes as it is; any other becomes the envelope with its status',
  async t => {
    const backend = await testUpstream(t.after, (request, response) => {
      if (request.url === '/api/any/json') {
        return json(422, { field: 'name' })(request, response, {} as never)
      }
      response
        .writeHead(request.url === '/api/any/html' ? 500 : 404, { 'content-type': 'text/html' })
        .end(request.url === '/api/any/html' ? '<h1>Stack trace</h1>' : '')
    })
    const gateway = await testGateway(t.after, {
      routes: routesTo(backend.url, {
        any: { path: '/api/any/*', access: 'public', upstream: 'backend' }
      })
    })
    t.match(await gateway.call('/api/any/json'), { status: 422, text: '{"field":"name"}' })
    const html = await gateway.call('/api/any/html')
    t.match(html, { status: 500, json: { errorCode: 'upstream.error', code: 500, message: /\w/ } })
    t.notMatch(html.text, 'Stack')
    t.match(await gateway.call('/api/any/empty'), {
      status: 404,
      json: { errorCode: 'upstream.error' }
    })
  }
)

t.test('on a shaped route an upstream’s error is enveloped with its own message', async t => {
  const backend = await testUpstream(t.after, json(409, { msg: 'The order is closed.' }))
  const gateway = await testGateway(t.after, {
    routes: routesTo(
      backend.url,
      { order: { path: '/api/order', access: 'public', upstream: 'backend', shape: 'data' } },
      { shapes: { data: [{ wrap: 'envelope' }] } }
    )
  })
  t.match(await gateway.call('/api/order'), {
    status: 409,
    json: {
      success: false,
      code: 409,
      message: 'The order is closed.',
      errorCode: 'upstream.error'
    }
  })
})

t.test('a console’s own fields and traceparent pass; the request id is ours', async t => {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, {
    routes: routesTo(backend.url, {
      any: { path: '/api/any', access: 'public', upstream: 'backend' }
    })
  })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const answer = await gateway.call('/api/any', {
    headers: {
      'x-tenant-id': 'acme',
      'x-xsrf-token': 't',
      'accept-language': 'zh-CN',
      traceparent,
      'x-request-id': 'chosen-by-client'
    }
  })
  t.match(backend.seen[0]?.headers, {
    'x-tenant-id': 'acme',
    'x-xsrf-token': 't',
    'accept-language': 'zh-CN',
    traceparent
  })
  t.equal(backend.seen[0]?.headers['x-request-id'], answer.headers.get('x-request-id'))
  t.not(answer.headers.get('x-request-id'), 'chosen-by-client')
  const line = () => gateway.log.find(({ msg, route }) => msg === 'request' && route === 'any')
  await until('the request was logged', () => line() !== undefined)
  t.match(line(), {
    requestId: answer.headers.get('x-request-id'),
    status: 200,
    upstreamMs: Number,
    ms: Number
  })
})

t.test('only what a route names of cookies and Authorization crosses', async t => {
  const backend = await testUpstream(t.after, (_request, response) => {
    response
      .writeHead(200, {
        'content-type': 'application/json',
        'set-cookie': ['theme=dark; Path=/', 'console_sid=evil; Path=/']
      })
      .end('{}')
  })
  const gateway = await testGateway(t.after, {
    routes: routesTo(backend.url, {
      closed: { path: '/api/closed', upstream: 'backend' },
      open: {
        path: '/api/open',
        upstream: 'backend',
        passHeaders: ['authorization'],
        passCookies: ['theme'],
        setCookies: ['theme']
      }
    })
  })
  const cookie = `${await gateway.signIn()}; theme=light; TOKEN__=abc`
  const closed = await gateway.call('/api/closed', {
    cookie,
    headers: { authorization: 'Bearer x' }
  })
  t.same(
    [
      backend.seen[0]?.headers.cookie,
      backend.seen[0]?.headers.authorization,
      closed.headers.getSetCookie()
    ],
    [undefined, undefined, []]
  )
  const open = await gateway.call('/api/open', { cookie, headers: { authorization: 'Bearer x' } })
  t.same(
    [
      backend.seen[1]?.headers.cookie,
      backend.seen[1]?.headers.authorization,
      open.headers.getSetCookie()
    ],
    ['theme=light', 'Bearer x', ['theme=dark; Path=/']]
  )
})
