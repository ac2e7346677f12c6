/** What a peer may say of a request, and what only a load balancer that config names. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import t, { type Test } from 'tap'
import { stringify } from 'yaml'
import { faultsOf, textFolder } from '../support/config-files.ts'
import { testGateway } from '../support/gateway.ts'
import { testUpstream } from '../support/upstream.ts'

const balancer = '127.0.0.2'

async function behindBalancer(t: Test, server: object = {}, limits: Record<string, unknown> = {}) {
  const backend = await testUpstream(t.after)
  const gateway = await testGateway(t.after, {
    gateway: { server: { trustedProxies: [balancer], ...server } },
    routes: {
      upstreams: { b: { url: backend.url } },
      routes: { r: { path: '/api/r', access: 'public', upstream: 'b' } }
    },
    limits
  })
  const ask = async (from: string, headers: Record<string, string>): Promise<IncomingMessage> => {
    const asked = request(`${gateway.url}/api/r`, {
      localAddress: from,
      agent: false,
      headers
    }).end()
    const [response] = (await once(asked, 'response')) as [IncomingMessage]
    response.resume()
    await once(response, 'end')
    return response
  }
  return { gateway, backend, ask }
}

t.test('only a trusted proxy chooses the request id', async t => {
  const { backend, ask } = await behindBalancer(t)
  const headers = { 'x-request-id': 'chosen-outside' }
  const ids = []
  for (const from of [balancer, '127.0.0.1', '127.0.0.3']) {
    ids.push((await ask(from, headers)).headers['x-request-id'])
  }
  t.equal(ids[0], 'chosen-outside')
  for (const id of ids.slice(1)) t.match(id, /^[0-9a-f-]{36}$/)
  t.same(
    backend.seen.map(seen => seen.headers['x-request-id']),
    ids
  )
})

t.test(
  'a text that is no address is neither counted by nor passed on: the proxy that said it is',
  async t => {
    const { gateway, backend, ask } = await behindBalancer(
      t,
      {},
      {
        limits: { anonymous: { by: 'address', max: 3, window: '1h' } }
      }
    )
    const statuses = []
    for (let n = 0; n < 6; n++) {
      statuses.push((await ask(balancer, { 'x-forwarded-for': `unknown-${n}` })).statusCode)
    }
    t.same(statuses, [200, 200, 200, 429, 429, 429], 'all are one caller')
    t.equal((await ask(balancer, { 'x-forwarded-for': '203.0.113.9' })).statusCode, 200)
    t.same(
      backend.seen.map(({ headers }) => headers['x-forwarded-for']),
      [balancer, balancer, balancer, '203.0.113.9']
    )
    t.notMatch(JSON.stringify(gateway.log), 'unknown-')
  }
)

t.test(
  'the port of X-Forwarded-Host is the listener’s, one that config names, or none',
  async t => {
    const { gateway, backend, ask } = await behindBalancer(t, {
      hosts: ['console.example.com:8443', '[::1]']
    })
    const own = new URL(gateway.url).port
    const cases = [
      ['console.example.com', 'console.example.com'],
      [`console.example.com:${own}`, `console.example.com:${own}`],
      ['console.example.com:8443', 'console.example.com:8443'],
      ['console.example.com:31337', 'console.example.com'],
      ['console.example.com:0', 'console.example.com'],
      ['[::1]:31337', '[::1]'],
      ['[::1]', '[::1]']
    ] as const
    for (const [host, forwarded] of cases) {
      for (const from of [balancer, '127.0.0.1']) {
        t.equal((await ask(from, { host })).statusCode, 200)
        t.equal(backend.seen.at(-1)?.headers['x-forwarded-host'], forwarded, `${host} from ${from}`)
      }
    }
  }
)

t.test('a token goes into no field that frames or describes a request', t => {
  const faults = (header: string) =>
    faultsOf(
      textFolder(t.after, {
        'routes.yaml': stringify({
          upstreams: { b: { url: 'http://b', credential: `header:${header}` } }
        })
      })
    ).filter(line => /upstreams\.b\.credential: (?!warning)/.test(line)).length
  const framing = [
    'host',
    'connection',
    'content-length',
    'transfer-encoding',
    'te',
    'trailer',
    'upgrade',
    'expect',
    'keep-alive',
    'proxy-authorization',
    'cookie',
    'content-type',
    'content-encoding',
    'accept-encoding',
    'x-request-id',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-user-id'
  ]
  for (const header of framing) t.equal(faults(header), 1, header)
  for (const header of ['x-token', 'authorization', 'token', 'x-auth-token']) {
    t.equal(faults(header), 0, header)
  }
  t.end()
})
