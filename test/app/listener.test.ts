import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import { connect } from 'node:net'
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

const head = (line: string, fields = '') =>
  `${line} HTTP/1.1\r\nHost: console.test\r\n${fields}\r\n`

const pipelined = {
  'CONNECT': head('CONNECT console.test:443'),
  'an upgrade': head('GET /api/session', 'Connection: upgrade\r\nUpgrade: websocket\r\n')
}

for (const [name, refused] of Object.entries(pipelined)) {
  t.test(`${name} behind a request that is answered at once leaves no connection open`, async t => {
    const gateway = await testGateway(t.after)
    const { port } = new URL(gateway.url)
    const before = readdirSync('/proc/self/fd').length
    for (let client = 0; client < 20; client++) {
      const socket = connect(Number(port), '127.0.0.1')
      socket.on('error', () => {})
      await once(socket, 'connect')
      // What follows is read by nobody, so that the end behind it is not seen either.
      socket.write(head('PATCH /nowhere') + refused + 'x'.repeat(100_000))
      await Promise.race([once(socket, 'data'), once(socket, 'close')])
      socket.destroy()
    }
    await until(
      'all connections are gone',
      () => readdirSync('/proc/self/fd').length <= before,
      15_000
    )
  })
}

t.test('a DELETE that names a type and has no body is answered', async t => {
  const backend = await testUpstream(t.after, json(200, {}))
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { backend: { url: backend.url } },
      routes: {
        plain: { path: '/api/plain', access: 'public', upstream: 'backend', methods: ['DELETE'] }
      }
    }
  })
  const { port } = new URL(gateway.url)
  for (const [path, status] of [
    ['/api/plain', 200],
    ['/api/nothing', 404]
  ] as const) {
    const socket = connect(Number(port), '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.on('error', () => {})
    let text = ''
    socket.on('data', bytes => {
      text += String(bytes)
    })
    socket.write(head(`DELETE ${path}`, 'Content-Type: application/json\r\n'))
    await until(`${path} is answered`, () => text !== '')
    t.match(text, new RegExp(`^HTTP/1.1 ${status} `), path)
  }
})
