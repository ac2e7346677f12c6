import { mkdirSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { start } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

t.test('/healthz and /readyz are on the ops listener only', async t => {
  const gateway = await testGateway(t.after)
  t.match(await (await gateway.ops('/healthz')).json(), { status: 'ok' })
  t.match(await (await gateway.ops('/readyz')).json(), { status: 'ready' })
  t.equal((await gateway.ops('/other')).status, 404)
  for (const path of ['/healthz', '/readyz', '/metrics']) {
    t.equal((await gateway.call(path)).status, 404)
  }
})

t.test(
  'SIGTERM: not ready, requests in flight finish, new ones are taken during the notice, exit 0',
  async t => {
    let finish = () => {}
    const backend = await testUpstream(t.after, (request, response) => {
      finish = () => json(200, { done: true })(request, response, {} as never)
    })
    const attempt = async (notice: string): Promise<boolean> => {
      const before = backend.seen.length
      const child = start(
        t.after,
        await configFolder({
          gateway: { drain: { notice, grace: '60s' } },
          routes: {
            upstreams: { b: { url: backend.url } },
            routes: { slow: { path: '/api/slow', access: 'public', upstream: 'b' } }
          }
        })
      )
      const { url, ops } = JSON.parse(
        (await child.says('listening on'))
          .split('\n')
          .find(line => line.includes('listening on')) ?? ''
      ) as { url: string; ops: string }
      const slow = fetch(`${url}/api/slow`)
      await until('the request arrived', () => backend.seen.length > before)
      child.signal('SIGTERM')
      await child.says('stopping')
      const seen = await Promise.all(
        [`${ops}/readyz`, `${ops}/healthz`, `${url}/api/account/profile`].map(
          async path => (await fetch(path)).status
        )
      ).catch(() => [])
      finish()
      t.match(await (await slow).json(), { done: true })
      t.same(await child.ended, { code: 0, signal: null })
      if (seen.length > 0) t.same(seen, [503, 200, 401], 'still taken while load balancers notice')
      return seen.length > 0
    }
    // A machine that stands still may sleep through the notice: then the next one is longer.
    t.ok((await attempt('500ms')) || (await attempt('5s')) || (await attempt('20s')))
  }
)

t.test(
  'a console’s files are served on the same origin, with history fallback and caching by name',
  async t => {
    const folder = await configFolder({ gateway: { console: { root: 'dist' } } })
    mkdirSync(`${folder}/dist/assets`, { recursive: true })
    writeFileSync(`${folder}/dist/index.html`, '<!doctype html><title>Console</title>')
    writeFileSync(`${folder}/dist/assets/app.3f2a9c81.js`, 'export {}')
    writeFileSync(`${folder}/dist/.env`, 'SECRET=1')
    const gateway = await testGateway(t.after, folder)
    const html = { accept: 'text/html,application/xhtml+xml' }
    for (const path of ['/', '/index.html', '/welcome', '/user/login']) {
      const page = await gateway.call(path, { headers: html })
      t.match(page, { status: 200, text: /Console/ }, path)
      t.equal(page.headers.get('cache-control'), 'no-cache')
      t.match(page.headers.get('content-security-policy'), "frame-ancestors 'none'")
    }
    const asset = await gateway.call('/assets/app.3f2a9c81.js')
    t.match(asset, { status: 200, text: 'export {}' })
    t.match(asset.headers.get('cache-control'), 'immutable')
    t.match(
      await gateway.call('/api/nothing', { headers: html }),
      { status: 404, json: { errorCode: 'route.unknown' } },
      'no page under /api/'
    )
    t.match(await gateway.call('/assets/missing.js'), {
      status: 404,
      json: { errorCode: 'route.unknown' }
    })
    t.notMatch((await gateway.call('/.env')).text, 'SECRET')
  }
)

t.test('a page of a listed origin may call with credentials; no other may', async t => {
  const gateway = await testGateway(t.after, {
    gateway: { server: { origins: ['https://console.example.com'] } }
  })
  const preflight = (origin: string) =>
    gateway.call('/api/auth/admin/login', {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'content-type'
      }
    })
  const allowed = await preflight('https://console.example.com')
  t.equal(allowed.status, 204)
  t.match(Object.fromEntries(allowed.headers), {
    'access-control-allow-origin': 'https://console.example.com',
    'access-control-allow-credentials': 'true',
    'vary': /Origin/i
  })
  for (const origin of [
    'https://evil.example',
    'null',
    'https://console.example.com.evil.example'
  ]) {
    t.equal((await preflight(origin)).headers.get('access-control-allow-origin'), null, origin)
    t.equal(
      (
        await gateway.call('/api/auth/admin/login', {
          json: { username: 'alice', password: 'x' },
          headers: { origin }
        })
      ).status,
      403,
      origin
    )
  }
  t.equal(
    (
      await gateway.call('/api/auth/admin/login', {
        json: { username: 'alice', password: 'x' },
        headers: { 'origin': 'https://console.example.com', 'sec-fetch-site': 'same-site' }
      })
    ).status,
    401
  )
})

t.test('without Redis the start says in one line that sessions live in the process', async t => {
  const gateway = await testGateway(t.after)
  t.equal(gateway.log.filter(({ msg }) => String(msg).includes('no Redis is configured')).length, 1)
  t.equal(
    gateway.log.filter(({ msg }) => String(msg).includes('without https')).length,
    1,
    'and that the cookie is not secure'
  )
})
