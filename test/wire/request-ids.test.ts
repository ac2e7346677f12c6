/** Each response has the id of its request, and each error body too. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { temporaryFolder } from '../support/temporary.ts'

const root = temporaryFolder()
writeFileSync(join(root, 'index.html'), '<!doctype html>')

const routesTo = async ({ after }: Test) => ({
  upstreams: { backend: { url: (await testUpstream(after, json(200, { a: 1 }))).url } },
  routes: {
    open: { path: '/api/open', access: 'public', upstream: 'backend' },
    socket: {
      path: '/api/socket',
      access: 'public',
      upstream: 'backend',
      websocket: {}
    }
  }
})

const request = (line: string, headers = '') =>
  `${line} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n${headers}\r\n`
const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\n'

const requests: Readonly<Record<string, readonly [status: number, bytes: string]>> = {
  'a proxied response': [200, request('GET /api/open')],
  'an own endpoint': [401, request('GET /api/account/profile')],
  'a path that nothing takes': [404, request('GET /api/nothing')],
  'a method that is not allowed': [405, request('DELETE /api/open')],
  'a file of the console': [200, request('GET /index.html')],
  'a path that the router cannot decode': [400, request('GET /api/%ff')],
  'bytes that are no request': [400, 'nonsense\r\n\r\n'],
  'header fields that are too large': [431, request('GET /', `X: ${'x'.repeat(20_000)}\r\n`)],
  'an expectation': [417, request('GET /api/open', 'Expect: miracles\r\n')],
  'CONNECT': [405, request('CONNECT 127.0.0.1:443')],
  'an upgrade that no route takes': [404, request('GET /api/nothing', upgrade)],
  'a WebSocket handshake that is not well-formed': [400, request('GET /api/socket', upgrade)]
}

const idIn = (head: string) => /^x-request-id: (\S+)/im.exec(head)?.[1] ?? 'none'

t.test(
  'each response has an id, which is in the body of an error, in the log and in why',
  async t => {
    const routes = await routesTo(t)
    const gateway = await testGateway(t.after, { routes, gateway: { console: { root } } })
    for (const [name, [status, bytes]] of Object.entries(requests)) {
      const response = await raw(gateway.url, bytes)
      const id = idIn(response.head)
      t.equal(response.status, status, name)
      t.match(id, /^[\da-f-]{36}$/, name)
      if (status >= 400) t.match(JSON.parse(response.body), { requestId: id }, name)
      await gateway.logged(line => line['requestId'] === id)
      if (status < 400) continue
      await until('it is kept', async () => {
        const asked = await gateway.ops(`/ops/api/requests/${id}`)
        const { requests: kept } = (await asked.json()) as { readonly requests: readonly object[] }
        return kept.length === 1
      })
    }
  }
)

const custom = {
  members: { data: 'result', code: 'status', message: 'msg', requestId: 'traceId' }
}
for (const dialect of ['dual', 'ant-design-pro', 'base-response', 'custom', 'problem']) {
  t.test(`the dialect ${dialect} has the id in errors`, async t => {
    const envelope = { dialect, ...(dialect === 'custom' && { custom }) }
    const gateway = await testGateway(t.after, { routes: await routesTo(t), gateway: { envelope } })
    for (const bytes of [request('GET /api/nothing'), 'nonsense\r\n\r\n']) {
      const { head, body } = await raw(gateway.url, bytes)
      const { requestId, traceId } = JSON.parse(body) as Record<string, unknown>
      t.equal(dialect === 'custom' ? traceId : requestId, idIn(head))
      t.not(idIn(head), 'none')
    }
  })
}
