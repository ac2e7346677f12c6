import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'

t.test('the operators’ API stands below /ops/api, and nowhere else', async t => {
  const gateway = await testGateway(t.after)
  await gateway.signIn()
  for (const path of ['/sessions', '/status', '/plan', '/lockouts', '/limits/caller?caller=::1']) {
    t.equal((await gateway.ops(`/ops/api${path}`)).status, 200, path)
    t.equal((await gateway.ops(path)).status, 404, path)
  }
})

t.test('the API describes each of its routes', async t => {
  const gateway = await testGateway(t.after)
  const response = await gateway.ops('/ops/api/openapi.json')
  const { paths } = (await response.json()) as { readonly paths: Record<string, object> }
  t.match(paths, {
    '/ops/api/sessions': { get: { parameters: [{ name: 'user', in: 'query' }] } },
    '/ops/api/sessions/close': { post: { requestBody: { content: {} } } },
    '/ops/api/limits': { get: {} },
    '/ops/api/openapi.json': { get: {} }
  })
  for (const [path, operations] of Object.entries(paths)) {
    for (const operation of Object.values(operations)) t.type(operation.summary, 'string', path)
  }
})

t.test('each answer has its id, and so has each error', async t => {
  const gateway = await testGateway(t.after)
  const id = /^[\da-f-]{36}$/
  for (const path of ['/healthz', '/readyz', '/metrics', '/ops/', '/ops/api/requests']) {
    t.match((await gateway.ops(path)).headers.get('x-request-id'), id, path)
  }
  const refused = await fetch(`${gateway.opsUrl}/ops/api/requests`)
  const errors = [
    refused,
    await gateway.ops('/nowhere'),
    await gateway.ops('/%'),
    await gateway.ops('/ops/api/nowhere'),
    await gateway.ops('/ops/api/requests?status=x'),
    await gateway.ops('/ops/api/sign-in', { json: {}, headers: { origin: 'http://evil.example' } })
  ]
  for (const response of errors) {
    const requestId = response.headers.get('x-request-id')
    t.match(requestId, id)
    t.match(await response.json(), { error: String, requestId }, `${response.status}`)
  }
  const { host } = new URL(gateway.opsUrl)
  const { head } = await raw(gateway.opsUrl, `CONNECT a:1 HTTP/1.1\r\nhost: ${host}\r\n\r\n`)
  t.match(head, /^HTTP\/1\.1 405 [^]*^x-request-id: [\da-f-]{36}/m)
})
