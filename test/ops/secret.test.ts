/** The operators' secret, and the names by which the listener is called. */
import t from 'tap'
import { run } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { callOps } from '../support/operator.ts'
import { testSecret } from '../support/ops.ts'
import { answers, raw, request as rawRequest } from '../support/raw.ts'

const guarded = [
  ['GET', '/ops/api/status'],
  ['GET', '/ops/api/sessions?user=1'],
  ['POST', '/ops/api/sessions/close'],
  ['POST', '/ops/api/users/block'],
  ['POST', '/ops/api/reload'],
  ['POST', '/ops/api/link'],
  ['POST', '/ops/api/lockouts/lift'],
  ['POST', '/ops/api/limits/caller/reset'],
  ['GET', '/openapi.json'],
  ['GET', '/metrics'],
  ['HEAD', '/metrics'],
  ['GET', '/metrics/'],
  ['GET', '//metrics'],
  ['GET', '/nowhere']
] as const

t.test(
  'without the secret, or with a wrong one, only /healthz and a bare /readyz answer',
  async t => {
    const { opsUrl, log, call, signIn } = await testGateway(t.after)
    const cookie = await signIn()
    const wrong = [
      '',
      'Bearer ',
      `Bearer ${testSecret}x`,
      `Bearer ${testSecret.slice(1)}`,
      `Bearer ${testSecret}, Bearer x`,
      `Basic ${testSecret}`,
      testSecret
    ]
    for (const authorization of [undefined, ...wrong]) {
      const headers = { authorization }
      for (const [method, path] of guarded) {
        const json = method === 'POST' && { json: { user: '1' } }
        const answer = await callOps(opsUrl, path, { method, headers, ...json })
        t.equal(answer.status, 401, `${method} ${path} with ${authorization}`)
        t.match(answer.headers['www-authenticate'], /^Bearer/)
        if (method !== 'HEAD') t.match(answer.json, { code: 'ops.secret' })
      }
      t.equal((await callOps(opsUrl, '/healthz', { headers })).status, 200)
      t.same((await callOps(opsUrl, '/readyz', { headers })).json, { status: 'ready' })
    }
    t.match(
      log.filter(({ event }) => event === 'ops.refused'),
      [{ level: 'warn', address: '127.0.0.1', refused: 1 }],
      'one line a minute tells of wrong ones'
    )
    t.equal((await call('/api/account/profile', { cookie })).status, 200, 'no session was closed')
    const headers = { authorization: `bearer ${testSecret}` }
    t.match((await callOps(opsUrl, '/readyz', { headers })).json, { sessions: 'in this process' })
    for (const path of ['/ops/api/status', '/metrics', '/openapi.json']) {
      t.equal((await callOps(opsUrl, path, { headers })).status, 200, path)
    }
    t.notOk(JSON.stringify(log).includes(testSecret), 'no log line holds the secret')
  }
)

t.test('neither a cookie nor an open path hides a wrong secret from the log', async t => {
  const cookie = `console_ops=${'A'.repeat(48)}`
  const wrong = { authorization: 'Bearer guess' }
  for (const [path, headers, status] of [
    ['/ops/api/status', { ...wrong, cookie }, 401],
    ['/readyz', wrong, 200],
    ['/metrics', wrong, 200]
  ] as const) {
    const gateway = await testGateway(t.after, { gateway: { ops: { openMetrics: true } } })
    const refused = () => gateway.log.filter(({ event }) => event === 'ops.refused')
    const other = { ...headers, authorization: 'Basic Z3Vlc3M6' }
    t.equal((await callOps(gateway.opsUrl, path, { headers: other })).status, status)
    t.same(refused(), [], `${path}: Basic is for a proxy in front`)
    t.equal((await callOps(gateway.opsUrl, path, { headers })).status, status)
    t.match(refused(), [{ address: '127.0.0.1', refused: 1 }], path)
    t.equal((await callOps(gateway.opsUrl, '/openapi.json', {})).status, 401)
  }
})

t.test('a short secret, and one that no header field can carry, are faults', async t => {
  const folder = await configFolder({ gateway: { ops: { secret: '${OPS_SECRET}' } } })
  for (const weak of ['short', 'with blanks of more than 32 letters', `${'x'.repeat(40)}ü`]) {
    const env = { OPS_SECRET: weak }
    const { code, out, err } = await run(['check', '--config', folder], { env })
    t.equal(code, 1)
    t.match(out + err, /ops\.secret: has to be at least 32 visible ASCII characters/)
    t.notMatch(out + err, weak)
  }
})

t.test('a page that gave its own name this address reads nothing: 421', async t => {
  const { opsUrl } = await testGateway(t.after, {
    gateway: { ops: { hosts: ['Ops.example.com'], openMetrics: true } }
  })
  const authorization = `Bearer ${testSecret}`
  const marks = [
    { origin: 'http://evil.example' },
    { referer: 'http://evil.example/' },
    { 'sec-fetch-site': 'same-origin' }
  ]
  const own = ['127.0.0.1:9090', '[::1]:9090', '[::1]', 'localhost', 'ops.EXAMPLE.com']
  const other = ['evil.example:9090', 'gateway:9090', 'localhost.', '127.0.0.1.evil']
  const by = async (host: string, path: string, headers: object = {}) =>
    await callOps(opsUrl, path, { headers: { host, ...headers } })
  for (const path of ['/readyz', '/metrics', '/ops/', '/ops/page.css']) {
    for (const mark of marks) {
      for (const host of other) {
        const refused = await by(host, path, mark)
        t.equal(refused.status, 421, `${path} of ${host}`)
        t.match(refused.text, /ops\.hosts/)
      }
      for (const host of own) {
        t.equal((await by(host, path, mark)).status, 200, `${path} of ${host}`)
      }
    }
  }
  t.equal((await by('evil.example', '/metrics')).status, 200, 'a scraper uses any name')
  t.equal((await by('evil.example', '/openapi.json', { authorization })).status, 200)
  t.equal((await by('evil.example', '/ops/api/status', { authorization })).status, 421)
  t.equal((await by('evil.example', '/healthz', marks[0])).status, 200, 'it says nothing')
})

t.test('two Host lines are refused, and any expectation but 100-continue', async t => {
  const { opsUrl } = await testGateway(t.after)
  const ask = async (headers: string[]) => await raw(opsUrl, rawRequest('GET /healthz', headers))
  const hosts = await ask(['host: other.test'])
  t.match(hosts, { status: 400, head: /^connection: close$/im })
  t.match(hosts.whole, '"code":"request.malformed"')
  for (const expected of ['200-ok', '100-continue, x', 'x 100-continue']) {
    const refused = await ask([`expect: ${expected}`])
    t.match(refused, { status: 417, head: /^cache-control: no-store\r$/im }, expected)
    t.match(refused.whole, '"code":"request.expectation"')
  }
  const continued = await raw(opsUrl, rawRequest('GET /healthz', ['expect: 100-Continue']), {
    enough: received => answers(received) >= 2
  })
  t.match(continued.whole, /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 /)
})
