/** What a console on another origin may read: every answer, refusals too. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'

const origin = 'https://console.example.com'
const backend = await testUpstream(t.after, json(200, { ok: 1 }))
const gateway = await testGateway(t.after, {
  gateway: { server: { origins: [origin], exposeHeaders: ['x-next-page'] } },
  routes: {
    upstreams: { b: { url: backend.url } },
    routes: {
      open: { path: '/api/open', access: 'public', upstream: 'b', methods: ['GET', 'POST'] }
    }
  },
  limits: { sizes: { body: '1KiB', url: '1KiB' }, limits: {} }
})

const refusals: ReadonlyArray<
  readonly [name: string, path: string, status: number, init?: object]
> = [
  ['a body that is too large', '/api/open', 413, { method: 'POST', body: 'x'.repeat(3000) }],
  ['a target that is too long', `/api/open?${'x'.repeat(1200)}`, 414],
  ['a path with two readings', '/api//open', 400],
  ['a path that cannot be decoded', '/api/%E7', 400],
  ['no session', '/api/account/profile', 401],
  ['nothing there', '/api/none', 404],
  ['another method', '/api/open', 405, { method: 'DELETE' }]
]
for (const [name, path, status, init = {}] of refusals) {
  t.test(`case 10: the page can read the refusal: ${name}`, async t => {
    const answer = await gateway.call(path, { ...init, headers: { origin } })
    t.equal(answer.status, status)
    t.equal(answer.headers.get('access-control-allow-origin'), origin)
    t.equal(answer.headers.get('access-control-allow-credentials'), 'true')
    t.match(answer.headers.get('vary'), /origin/i)
    const evil = await gateway.call(path, { ...init, headers: { origin: 'https://evil.example' } })
    t.not(evil.headers.get('access-control-allow-origin'), 'https://evil.example')
  })
}

t.test(
  'case 11: it may read fields of files, ranges, tags and lists, and more by config',
  async t => {
    const { headers } = await gateway.call('/api/open', { headers: { origin } })
    const exposed = headers.get('access-control-expose-headers')?.toLowerCase().split(/,\s*/) ?? []
    for (const name of [
      'content-disposition',
      'content-range',
      'etag',
      'x-total-count',
      'x-request-id',
      'x-next-page'
    ]) {
      t.ok(exposed.includes(name), name)
    }
  }
)

t.test('it may send the headers that it asks for, a page of another origin none', async t => {
  const asked = 'content-type,x-anything'
  const preflight = async (from: string) => {
    const headers = {
      'origin': from,
      'access-control-request-method': 'POST',
      'access-control-request-headers': asked
    }
    return await gateway.call('/api/open', { method: 'OPTIONS', headers })
  }
  t.equal((await preflight(origin)).headers.get('access-control-allow-headers'), asked)
  const evil = await preflight('https://evil.example')
  t.not(evil.headers.get('access-control-allow-origin'), 'https://evil.example')
})

t.end()
