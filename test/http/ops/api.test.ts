/** The operators' API as a whole: where it stands, how it is described, and its requests. */
import { Ajv } from 'ajv'
import formats from 'ajv-formats'
import t from 'tap'
import { testGateway } from '../../support/gateway.ts'
import { linesIn } from '../../support/ledger.ts'
import { until } from '../../support/until.ts'

type Schema = Record<string, unknown>
type Operation = Record<string, any>

const gateway = await testGateway(t.after)
const cookie = await gateway.signIn()

t.test('the operators’ API stands below /ops/api, and nowhere else', async t => {
  for (const path of ['/sessions', '/status', '/plan', '/lockouts', '/limits/caller?caller=::1']) {
    t.equal((await gateway.ops(`/ops/api${path}`)).status, 200, path)
    t.equal((await gateway.ops(path)).status, 404, path)
  }
})

/** No member of an answer stands outside of its schema. */
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed)
  if (typeof value !== 'object' || value === null) return value
  const members = Object.entries(value).map(([name, member]) => [name, closed(member)])
  const schema = Object.fromEntries(members) as Schema
  const isWhole = 'properties' in schema && Object.keys(schema['properties'] as Schema).length > 0
  return isWhole ? { ...schema, additionalProperties: false } : schema
}

t.test('the API describes each of its routes', async t => {
  await gateway.call('/api/nowhere')
  const response = await gateway.ops('/ops/api/openapi.json')
  const { paths } = (await response.json()) as {
    readonly paths: Record<string, Record<string, Operation>>
  }
  t.match(paths, {
    '/ops/api/sessions': { get: { parameters: [{ name: 'user', in: 'query', required: false }] } },
    '/ops/api/sessions/close': { post: { requestBody: { content: {} } } },
    '/ops/api/requests': { get: { parameters: [{ name: 'id', in: 'query', required: false }] } },
    '/ops/api/limits': { get: {} },
    '/ops/api/openapi.json': { get: {} }
  })
  t.same(
    Object.keys(paths).filter(path => !path.startsWith('/ops/api/')),
    [],
    'no page'
  )
  const ajv = formats.default(new Ajv({ strict: false, allErrors: true }))
  for (const [path, operations] of Object.entries(paths)) {
    for (const operation of Object.values(operations)) t.type(operation['summary'], 'string', path)
    const ofAnswer = operations['get']?.['responses'][200].content?.['application/json'].schema
    const isOpen = path.includes('requests') || path.endsWith('maintenance')
    if (ofAnswer === undefined || path.endsWith('/openapi.json')) continue
    const answer = await gateway.ops(path.replace(/caller$/, '$&?caller=a'))
    const fits = ajv.compile(isOpen ? ofAnswer : (closed(ofAnswer) as Schema))
    t.ok(fits(await answer.json()), `${path} ${JSON.stringify(fits.errors)}`)
  }
})

t.test('each answer has its id, and so has each error', async t => {
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
    await gateway.ops('/ops/api/reload', { json: {}, headers: { origin: 'http://evil.example' } })
  ]
  for (const response of errors) {
    const requestId = response.headers.get('x-request-id')
    t.match(requestId, id)
    t.match(await response.json(), { error: String, requestId }, `${response.status}`)
  }
})

t.test('requests are found by filters, and by id with advice', async t => {
  const ask = async (path: string) =>
    (await (await gateway.ops(`/ops/api/requests${path}`)).json()) as { requests: Operation[] }
  const { headers } = await gateway.call('/api/nowhere?token=secret', { cookie })
  const id = headers.get('x-request-id') ?? ''
  await until('it is remembered', async () => (await ask(`?id=${id}`)).requests.length === 1)
  t.match(await ask('?status=4xx&last=1'), {
    requests: [{ requestId: id, status: 404, code: 'route.unknown' }]
  })
  t.match(await ask('?route=login&user=alice&last=1'), { requests: [{ status: 200 }] })
  t.match(await ask(`?id=${id}`), {
    requests: [{ requestId: id, message: String, advice: /No route has this path/ }],
    oldestAt: String
  })
  t.notMatch(JSON.stringify(await ask('')), 'secret')
  await gateway.call(`/${'x'.repeat(600)}?token=secret`)
  await until('a long path is cut', async () => {
    const [last] = (await ask('?status=4xx')).requests
    return last?.['path'].length === 512
  })
  t.same((await ask('?id=not-there')).requests, [])
})

t.test('an act that failed stands in the ledger with its code', async t => {
  const files = { gateway: { audit: { key: '${AUDIT}' } } }
  const environment = { AUDIT: 'an audit key of at least thirty-two bytes' }
  const { ops, folder } = await testGateway(t.after, files, environment)
  const json = { until: new Date(Date.now() + 60_000).toISOString(), routes: ['nowhere'] }
  t.equal((await ops('/ops/api/maintenance', { json })).status, 400)
  t.match(
    linesIn(folder).filter(({ kind }) => kind === 'act'),
    [{ act: 'maintenance.begin', outcome: 'failed', code: 'request.malformed' }]
  )
})

t.end()
