import { mkdirSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { connect } from 'node:net'
import t from 'tap'
import { configFolder, testGateway } from '../../support/gateway.ts'
import { signInAt } from '../../support/sign-in.ts'
import { json, testUpstream } from '../../support/upstream.ts'

t.test('a client that leaves before its page begins is no fault of the gateway', async t => {
  const folder = await configFolder({ gateway: { console: { root: 'console' } } })
  mkdirSync(join(folder, 'console'))
  writeFileSync(join(folder, 'console/index.html'), '<!doctype html><title>console</title>')
  const gateway = await testGateway(t.after, folder)
  const { port } = new URL(gateway.url)
  for (let visitor = 0; visitor < 5; visitor++) {
    const socket = connect(Number(port), '127.0.0.1')
    await once(socket, 'connect')
    socket.end('GET /a/page HTTP/1.1\r\nHost: console.test\r\nAccept: text/html\r\n\r\n', () =>
      socket.resetAndDestroy()
    )
    await once(socket, 'close')
  }
  await gateway.logged(line => line['msg'] === 'request' && line['status'] === 499)
  t.equal((await gateway.call('/a/page', { headers: { accept: 'text/html' } })).status, 200)
  t.same(
    gateway.log.filter(({ level }) => level === 'error'),
    [],
    'nothing is logged as an error'
  )
  const metrics = await (await fetch(`${gateway.opsUrl}/metrics`)).text()
  t.notMatch(
    metrics,
    /console_gateway_errors_total\{code="gateway.fault"\}/,
    'and nothing is counted'
  )
})

t.test('a back-end’s error that quotes the session’s token never reaches the browser', async t => {
  const token = 'tok-0123456789abcdef'
  const bodies = new Map([
    ['/message', { message: `Bearer ${token} has expired` }],
    ['/field', { message: 'Not valid.', errors: { auth: [token] } }],
    ['/other', { message: 'Not valid.', errors: { price: ['too low'] } }]
  ])
  const backend = await testUpstream(t.after, (request, response, seen) => {
    const body = bodies.get(request.url ?? '')
    const isLogin = body === undefined
    json(isLogin ? 200 : 400, body ?? { id: 7, token })(request, response, seen)
  })
  const { gateway: files, routes } = signInAt(backend.url, { token: 'token' })
  const upstreams = { b: { ...routes.upstreams.b, credential: 'bearer', errors: 'laravel' } }
  const gateway = await testGateway(t.after, {
    gateway: files,
    routes: {
      upstreams,
      routes: { all: { path: '/api/*', rewrite: '/*', upstream: 'b', shape: 'whole' } },
      shapes: { whole: [{ wrap: 'envelope' }] }
    }
  })
  const cookie = await gateway.signIn()
  for (const path of ['/api/message', '/api/field']) {
    const called = await gateway.call(path, { cookie })
    t.match(called, { status: 400, json: { errorCode: 'upstream.error' } })
    t.notMatch(called.text, token)
    t.match(called.json.message, /^The service behind this page/)
    t.notOk('fieldErrors' in called.json)
  }
  const other = await gateway.call('/api/other', { cookie })
  t.match(other.json, { message: 'Not valid.', fieldErrors: { price: ['too low'] } })
  t.notMatch(JSON.stringify(gateway.log), token)
})
