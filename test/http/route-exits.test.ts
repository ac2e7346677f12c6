/** Strict rules that a route can loosen, and what stays strict all the same. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { json, testUpstream } from '../support/upstream.ts'

const backend = await testUpstream(t.after, (seen, response) => {
  if (seen.url?.startsWith('/report') === true) {
    response.writeHead(200, { 'content-type': 'application/pdf' }).end('%PDF-1.4')
  } else json(200, { ok: 1 })(seen, response, backend.seen.at(-1) as never)
})
const open = { access: 'public', upstream: 'b' } as const
const gateway = await testGateway(t.after, {
  gateway: { server: { origins: ['https://console.example.com'] } },
  routes: {
    upstreams: { b: { url: backend.url } },
    routes: {
      queues: { path: '/api/queues/:vhost/:name', ...open, passEncodedSlashes: true },
      objects: { path: '/api/objects/*', ...open, rewrite: '/o/*', passEncodedSlashes: true },
      secret: { path: '/api/objects/secret/*', upstream: 'b', access: { roles: ['admin'] } },
      strict: { path: '/api/strict/*', ...open },
      report: { path: '/api/report', ...open, rewrite: '/report', framedByConsole: true },
      plain: { path: '/api/plain', ...open, rewrite: '/report' }
    }
  }
})
const status = async (path: string) => (await raw(gateway.url, request(`GET ${path}`))).status

t.test('case 21: a route may take an encoded slash, and sends it as it came', async t => {
  for (const [path, sent] of [
    ['/api/queues/%2F/tasks', '/api/queues/%2F/tasks'],
    ['/api/queues/a%2fb/tasks?x=%2F', '/api/queues/a%2fb/tasks?x=%2F'],
    ['/api/objects/2024%2F01%2Freport.pdf', '/o/2024%2F01%2Freport.pdf']
  ] as const) {
    t.equal(await status(path), 200, path)
    t.equal(backend.seen.at(-1)?.url, sent)
  }
  const before = backend.seen.length
  t.equal(await status('/api/strict/a%2Fb'), 400, 'no other route takes it')
  for (const path of [
    '/api/objects/..%2F..%2Fetc',
    '/api/objects/a%2F..%2Fb',
    '/api/objects/a%2F.%2Fb',
    '/api/objects/a%252Fb',
    '/api/objects/a%5Cb',
    '/api/objects/secret%2Fx',
    '/api/objects/secret%2fx%2fy'
  ]) {
    t.equal(await status(path), 400, path)
  }
  t.equal(backend.seen.length, before)
})

t.test('case 12: a route may let the console show its files in a frame', async t => {
  const csp = async (path: string) =>
    (await gateway.call(path)).headers.get('content-security-policy')
  t.equal(await csp('/api/report'), "frame-ancestors 'self' https://console.example.com")
  t.match(await csp('/api/plain'), /frame-ancestors 'none'/)
})

t.end()
