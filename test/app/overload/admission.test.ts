/** Requests over the bounds of overload, to a server that holds all that are admitted. */
import { once } from 'node:events'
import { createServer, request as ask, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { FastifyRequest } from 'fastify'
import t from 'tap'
import { Signer } from '@fastify/cookie'
import { loadConfig } from '../../../src/config/load/load.ts'
import { createAdmission, createOverload } from '../../../src/app/overload/admission.ts'
import { Load } from '../../../src/app/overload/load.ts'
import { Refusals } from '../../../src/app/overload/refusals.ts'
import { ShedLog } from '../../../src/app/overload/shed-log.ts'
import { createMetrics } from '../../../src/observability/metrics.ts'
import { configFolder, type Files, testGateway } from '../../support/gateway.ts'
import { testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'

const secrets = ['a secret of at least thirty-two characters']
const cookie = (value: string) =>
  `other=1; console_sid=${encodeURIComponent(new Signer([...secrets]).sign(value))}`

interface Asked {
  readonly from?: string
  readonly path?: string
  readonly method?: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

/** @param server of `gateway.yaml` */
async function holding(cleanUp: (undo: () => unknown) => void, files: Files = {}) {
  const config = loadConfig(await configFolder(files), {})
  const metrics = createMetrics()
  const load = new Load({ everyMs: 1e9 })
  const lines: unknown[] = []
  const shed = new ShedLog(metrics, { warn: (line: unknown) => void lines.push(line) } as never)
  const refusals = new Refusals()
  const overload = { load, refusals, shed, close: () => {} }
  const admission = createAdmission(config, overload, { metrics, secrets })
  const held: ServerResponse[] = []
  const hold = admission.before((incoming, response) => {
    const [forwarded] = [incoming.headers['x-forwarded-for']].flat()
    const ip = forwarded?.split(',').at(-1)?.trim() ?? incoming.socket.remoteAddress ?? ''
    response.on('close', admission.begin({ ip, ips: [ip] } as FastifyRequest))
    held.push(response)
  })
  const server = createServer(hold)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  cleanUp(() => {
    load.close()
    refusals.close()
    server.close()
    server.closeAllConnections()
  })
  const call = async ({ from = '127.0.0.2', body, ...options }: Asked = {}) => {
    const sent = ask({ port, host: '127.0.0.1', localAddress: from, ...options })
    sent.on('error', () => {})
    sent.end(body)
    const [response] = await once(sent, 'response')
    let text = ''
    for await (const chunk of response) text += chunk
    return { status: response.statusCode, headers: response.headers, text }
  }
  /** Has so many more requests in flight. */
  const fill = async (count: number, asked: Asked = {}) => {
    const before = held.length
    for (let n = 0; n < count; n++) call(asked).catch(() => {})
    await until('all are held', () => held.length === before + count)
  }
  const isHeld = async (asked: Asked) => {
    const before = held.length
    const refused = call(asked).then(
      ({ status }) => status,
      () => 0
    )
    const admitted = until('it is held', () => held.length > before).then(() => 'held')
    return (await Promise.race([refused, admitted])) === 'held'
  }
  return { call, fill, isHeld, held, lines, load, metrics, shed, port }
}

const small = { gateway: { server: { overload: { inFlight: 128 } } } }

t.test(
  'the 65th request of an address is refused in the envelope, and others’ are not',
  async t => {
    const { call, fill, isHeld, held, metrics, lines, shed } = await holding(t.after, small)
    await fill(64)
    const refused = await call()
    t.match(refused, {
      status: 503,
      headers: {
        'retry-after': '1',
        'content-type': /^application\/json/,
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'connection': 'keep-alive',
        'x-request-id': /^[0-9a-f-]{36}$/
      }
    })
    t.match(JSON.parse(refused.text), {
      success: false,
      errorCode: 'overloaded',
      requestId: refused.headers['x-request-id']
    })
    t.ok(await isHeld({ from: '127.0.0.3' }))
    t.match(await call({ method: 'HEAD' }), { status: 503, text: '' })
    held[0]?.end()
    await until('one has left', () => held[0]?.closed === true)
    t.ok(await isHeld({}), 'there is room again')
    const { body } = await metrics.text()
    t.match(body, 'console_gateway_shed_total{reason="address"} 2')
    t.match(body, 'console_gateway_errors_total{code="overloaded"} 2')
    shed.write()
    t.same(lines, [
      { event: 'requests.shed', shed: { address: 2 }, last: { address: '127.0.0.2' } }
    ])
  }
)

t.test('a refusal closes the connection where a body was not read', async t => {
  const { call, fill } = await holding(t.after, small)
  await fill(64)
  const body = 'x'.repeat(500_000)
  t.match(await call({ method: 'POST', body }), { status: 503, headers: { connection: 'close' } })
})

t.test('an envelope that answers errors with 200 does so here', async t => {
  const server = { overload: { inFlight: 128 } }
  const files = { gateway: { server, envelope: { errorStatus: 'ok' } } }
  const { call, fill } = await holding(t.after, files)
  await fill(64)
  t.match(await call(), { status: 200, text: /"errorCode":"overloaded"/ })
})

t.test('a refusal has its whole message, in whatever language', async t => {
  const server = { overload: { inFlight: 128 } }
  const { call, fill } = await holding(t.after, {
    gateway: { server, envelope: { language: 'zh' } }
  })
  await fill(64)
  const { text } = await call()
  t.match(JSON.parse(text), { errorMessage: /[\u4e00-\u9fff]/ })
})

t.test('turns of the event loop are measured where an address has many requests', async t => {
  const { call, fill, load } = await holding(t.after, small)
  let measured = 0
  load.watchTurn = () => void measured++
  await fill(64)
  t.equal(measured, 0)
  await call()
  t.equal(measured, 1)
})

t.test('what was shed last is logged when the process ends', async t => {
  const lines: unknown[] = []
  const log = { warn: (line: unknown) => void lines.push(line) } as never
  const { shed, close } = createOverload({ metrics: createMetrics(), log })
  shed.count('connections', { address: '192.0.2.1' })
  close()
  t.match(lines, [{ event: 'requests.shed', shed: { connections: 1 } }])
})

t.test('who is signed in has a quarter more, and their sign-out twice as much', async t => {
  const { call, fill, isHeld } = await holding(t.after, small)
  const { path } = loadConfig(await configFolder(small), {}).routes.endpoints.logout
  await fill(64)
  const headers = { cookie: cookie('alice') }
  await fill(16, { headers })
  t.match(await call({ headers }), { status: 503 })
  const method = 'POST'
  t.ok(await isHeld({ method, path: `${path}?now`, headers }))
  t.match(await call({ method, path }), { status: 503 }, 'without a session')
  const forged = { cookie: `${cookie('alice').slice(0, -3)}aaa` }
  t.match(await call({ method, path, headers: forged }), { status: 503 }, 'with a forged one')
  t.match(await call({ method: 'PUT', path, headers }), { status: 503 }, 'with another method')
  const malformed = { cookie: 'console_sid=%' }
  t.match(await call({ headers: malformed }), { status: 503 }, 'with one that cannot be read')
})

t.test('with more addresses than the process carries, others are refused first', async t => {
  const { call, fill, isHeld, metrics } = await holding(t.after, small)
  await fill(64)
  await fill(64, { from: '127.0.0.3' })
  t.match(await call({ from: '127.0.0.4' }), { status: 503 })
  t.ok(await isHeld({ from: '127.0.0.4', headers: { cookie: cookie('alice') } }))
  t.match((await metrics.text()).body, 'console_gateway_shed_total{reason="load"} 1')
})

t.test('what a greedy address had before the bounds shrank keeps nobody else out', async t => {
  const { call, isHeld, load } = await holding(t.after, small)
  const former = { inFlight: 1000, inFlightPerAddress: 64, turn: 25 }
  for (let n = 0; n < 300; n++) load.begin('127.0.0.2', former)
  t.match(await call(), { status: 503 })
  t.ok(await isHeld({ from: '127.0.0.3' }))
})

t.test('behind a trusted proxy, clients count and not the proxy', async t => {
  const server = { overload: { inFlight: 128 }, trustedProxies: ['127.0.0.0/8'] }
  const { call, fill, isHeld } = await holding(t.after, { gateway: { server } })
  const from = (address: string) => ({ headers: { 'x-forwarded-for': `10.9.9.9, ${address}` } })
  await fill(64, from('203.0.113.1'))
  t.match(await call(from('203.0.113.1')), { status: 503 })
  t.ok(await isHeld(from('203.0.113.2')))
})

t.test('an address that is sent in an unusual form is counted as it is refused', async t => {
  const upstream = await testUpstream(t.after, () => {})
  const gateway = await testGateway(t.after, {
    gateway: { server: { overload: { inFlight: 128 }, trustedProxies: ['127.0.0.0/8'] } },
    limits: { inFlightPerUser: 1000, limits: {} },
    routes: {
      upstreams: { b: { url: upstream.url, connections: 500 } },
      routes: { open: { path: '/api/open', upstream: 'b', access: 'public' } }
    }
  })
  const { port } = new URL(gateway.url)
  for (const [index, forwarded] of ['203.0.113.1, ', '203.0.113.2,,', ',203.0.113.3 ,'].entries()) {
    const head = `GET /api/open HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${forwarded}\r\n\r\n`
    const sockets = Array.from({ length: 65 }, () => connect(Number(port), '127.0.0.1'))
    let refused = ''
    for (const socket of sockets) {
      socket.on('error', () => {}).on('data', text => (refused += text))
      socket.write(head)
    }
    await until('64 are held', () => upstream.seen.length === (index + 1) * 64)
    await until('the 65th is refused', () => refused.startsWith('HTTP/1.1 503'))
    for (const socket of sockets) socket.destroy()
  }
})

t.test('a refused request behind others of its connection cuts it', async t => {
  const { fill, held, port, metrics } = await holding(t.after, small)
  await fill(60)
  const socket = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.2' })
  socket.on('error', () => {}).resume()
  socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5))
  await once(socket, 'close')
  t.equal(held.length, 64)
  t.match((await metrics.text()).body, 'console_gateway_shed_total{reason="address"} 1')
})

t.test('a user has no more from several addresses than one address has', async t => {
  const upstream = await testUpstream(t.after, () => {})
  const gateway = await testGateway(t.after, {
    gateway: { server: { overload: { inFlight: 128 }, trustedProxies: ['127.0.0.0/8'] } },
    limits: { inFlightPerUser: 1000, limits: {} },
    routes: {
      upstreams: { backend: { url: upstream.url, connections: 1000 } },
      routes: { things: { path: '/api/things', upstream: 'backend' } }
    }
  })
  const [alice, bob] = [await gateway.signIn('alice'), await gateway.signIn('bob')]
  let sent = 0
  let refused = 0
  const send = (cookie: string) => {
    const headers = { 'x-forwarded-for': `203.0.113.${(sent++ % 4) + 1}` }
    gateway.call('/api/things', { cookie, headers }).then(
      ({ status, json }) => {
        if (status === 429 && json.errorCode === 'limit.exceeded') refused++
      },
      () => {}
    )
  }
  for (let n = 0; n < 70; n++) send(alice)
  await until('some are refused', () => refused === 6)
  await until('others are asked for', () => upstream.seen.length === 64)
  send(bob)
  await until('another user is not', () => upstream.seen.length === 65)
  t.equal(refused, 6)
})

t.test('requests that the queue of an upstream refuses share a line too', async t => {
  const upstream = await testUpstream(t.after, () => {})
  const gateway = await testGateway(t.after, {
    routes: {
      upstreams: { backend: { url: upstream.url, connections: 1, queue: 1 } },
      routes: { open: { path: '/api/open', access: 'public', upstream: 'backend' } }
    }
  })
  for (let n = 0; n < 10; n++) gateway.call('/api/open').catch(() => {})
  const lines = () => gateway.log.filter(({ event }) => event === 'requests.shed')
  const counts = () => lines().map(({ shed }) => (shed as { queue: number }).queue)
  await until('all are counted', () => counts().reduce((sum, count) => sum + count, 0) === 8)
  t.match(lines()[0], { last: { code: 'overloaded', route: 'open', limit: 'queue' } })
  t.equal(gateway.log.filter(({ msg }) => msg === 'request failed').length, 0)
  const requests = gateway.log.filter(({ msg, code }) => msg === 'request' && code === 'overloaded')
  t.equal(requests.length, 8)
})

t.test('while a gateway sheds, other addresses are served and the log has totals', async t => {
  const waiting: ServerResponse[] = []
  const upstream = await testUpstream(t.after, (_request, response) => void waiting.push(response))
  const gateway = await testGateway(t.after, {
    gateway: small.gateway,
    limits: { inFlightPerUser: 1000, limits: {} },
    routes: {
      upstreams: { backend: { url: upstream.url, connections: 1000 } },
      routes: { open: { path: '/api/open', access: 'public', upstream: 'backend' } }
    }
  })
  const { port } = new URL(gateway.url)
  const open = async (localAddress: string) => {
    const sent = ask({ port, host: '127.0.0.1', localAddress, path: '/api/open' })
    sent.on('error', () => {})
    sent.end()
    const [response] = await once(sent, 'response')
    response.resume()
    return response.statusCode as number
  }
  const shed: number[] = []
  let inFlight = 0
  const flood = () => {
    for (; inFlight < 100; inFlight++) {
      open('127.0.0.2').then(
        status => {
          shed.push(status)
          inFlight--
        },
        () => {}
      )
    }
  }
  await until('some are refused', () => {
    flood()
    return shed.length > 40
  })
  t.same(new Set(shed), new Set([503]))
  const other = open('127.0.0.3')
  await until('the other one is asked for', () => upstream.seen.length > 0)
  const line = await gateway.logged(({ event }) => event === 'requests.shed')
  t.match(line, { level: /./, last: { address: '127.0.0.2' } })
  const lines = gateway.log.filter(({ msg }) => msg === 'request failed')
  t.equal(lines.length, 0, 'no line for each')
  for (const response of waiting) response.end('{}')
  t.equal(await other, 200)
})

t.end()
