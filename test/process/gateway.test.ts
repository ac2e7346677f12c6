import t from 'tap'
import { configFolder, testGateway } from '../support/gateway.ts'
import { startGatewayProcess } from '../support/gateway-process.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

t.test('/healthz and /readyz are on the ops listener only', async t => {
  const gateway = await testGateway(t.after)
  t.match(await (await gateway.ops('/healthz')).json(), { status: 'ok' })
  t.match(await (await gateway.ops('/readyz')).json(), { status: 'ready' })
  t.equal((await gateway.ops('/other')).status, 404)
  for (const path of ['/healthz', '/readyz', '/metrics']) {
    t.equal(await gateway.status(path), 404)
  }
})

t.test('SIGTERM: not ready, what is in flight finishes, new ones are taken, exit 0', async t => {
  let finish = () => {}
  const backend = await testUpstream(t.after, (request, response) => {
    finish = () => json(200, { done: true })(request, response, {} as never)
  })
  const routes = { routes: { slow: { access: 'public' } } }
  const attempt = async (notice: string): Promise<boolean> => {
    const before = backend.seen.length
    const gateway = { drain: { notice, grace: '60s' } }
    const folder = await configFolder({ gateway, backend: backend.url, routes })
    const { url, opsUrl, ...child } = await startGatewayProcess(t.after, folder)
    const slow = fetch(`${url}/api/slow`)
    await until('the request arrived', () => backend.seen.length > before)
    child.signal('SIGTERM')
    await child.says('stopping')
    const paths = [`${opsUrl}/readyz`, `${opsUrl}/healthz`, `${url}/api/account/profile`]
    const seen = await Promise.all(paths.map(async path => (await fetch(path)).status)).catch(
      () => []
    )
    finish()
    t.match(await (await slow).json(), { done: true })
    t.same(await child.ended, { code: 0, signal: null })
    if (seen.length > 0) t.same(seen, [503, 200, 401], 'still taken while load balancers notice')
    return seen.length > 0
  }
  // A machine that stands still may sleep through the notice: then the next one is longer.
  t.ok((await attempt('500ms')) || (await attempt('5s')) || (await attempt('20s')))
})

t.test('a console’s files: the same origin, history fallback, caching by name', async t => {
  const gateway = await testGateway(t.after, {
    gateway: { console: { root: 'dist' } },
    code: {
      'dist/index.html': '<!doctype html><title>Console</title>',
      'dist/assets/app.3f2a9c81.js': 'export {}',
      'dist/.env': 'SECRET=1'
    }
  })
  const headers = { accept: 'text/html,application/xhtml+xml' }
  for (const path of ['/', '/index.html', '/welcome', '/user/login']) {
    const page = await gateway.call(path, { headers })
    t.match(page, { status: 200, text: /Console/ }, path)
    t.equal(page.headers.get('cache-control'), 'no-cache')
    t.match(page.headers.get('content-security-policy'), "frame-ancestors 'none'")
  }
  const asset = await gateway.call('/assets/app.3f2a9c81.js')
  t.match(asset, { status: 200, text: 'export {}' })
  t.match(asset.headers.get('cache-control'), 'immutable')
  const unknown = { status: 404, json: { errorCode: 'route.unknown' } }
  t.match(await gateway.call('/api/nothing', { headers }), unknown, 'no page under /api/')
  t.match(await gateway.call('/assets/missing.js'), unknown)
  t.notMatch((await gateway.call('/.env')).text, 'SECRET')
})

t.test('without Redis the start says in one line that sessions live in the process', async t => {
  const { log } = await testGateway(t.after)
  const linesOf = (text: string) => log.filter(({ msg }) => String(msg).includes(text)).length
  t.equal(linesOf('no Redis is configured'), 1)
  t.equal(linesOf('without https'), 1, 'and that the cookie is not secure')
})
