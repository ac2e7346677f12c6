import { rmSync, writeFileSync } from 'node:fs'
import t from 'tap'
import { createGuard } from '../../src/admin/guard.ts'
import { run } from '../support/command.ts'
import { configFolder, testGateway } from '../support/gateway.ts'
import { askOps } from '../support/ops.ts'
import { freePort } from '../support/ports.ts'

const secret = 'an-operators-secret-of-32-letters'
const guarded = [
  ['GET', '/ops/api/status'],
  ['GET', '/ops/api/sessions?user=1'],
  ['POST', '/ops/api/sessions/close'],
  ['GET', '/ops/api/users/blocked'],
  ['POST', '/ops/api/users/block'],
  ['POST', '/ops/api/users/unblock'],
  ['POST', '/ops/api/reload'],
  ['GET', '/ops/api/lockouts'],
  ['POST', '/ops/api/lockouts/lift'],
  ['GET', '/ops/api/limits'],
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
    const gateway = await testGateway(
      t.after,
      {
        gateway: { ops: { secret: '${OPS_SECRET}' } }
      },
      { OPS_SECRET: secret }
    )
    const cookie = await gateway.signIn()
    const wrong = [
      '',
      'Bearer',
      'Bearer ',
      `Bearer ${secret}x`,
      `Bearer ${secret.slice(1)}`,
      `Basic ${secret}`,
      secret
    ]
    for (const authorization of [undefined, ...wrong]) {
      const headers = authorization === undefined ? {} : { authorization }
      for (const [method, path] of guarded) {
        const json = method === 'POST' && {
          body: '{"user":"1"}',
          headers: { ...headers, 'content-type': 'application/json' }
        }
        const response = await fetch(gateway.opsUrl + path, { method, headers, ...json })
        t.equal(response.status, 401, `${method} ${path} with ${authorization}`)
        t.match(response.headers.get('www-authenticate'), /^Bearer/)
        if (method !== 'HEAD') t.match(await response.json(), { code: 'ops.secret' })
      }
      t.equal((await fetch(`${gateway.opsUrl}/healthz`, { headers })).status, 200)
      t.same(await (await fetch(`${gateway.opsUrl}/readyz`, { headers })).json(), {
        status: 'ready'
      })
    }
    t.match(
      gateway.log.filter(({ event }) => event === 'ops.refused'),
      [{ level: 'warn', address: '127.0.0.1', refused: 1 }],
      'one line a minute tells of wrong ones'
    )
    t.equal(
      (await gateway.call('/api/account/profile', { cookie })).status,
      200,
      'no session was closed'
    )
    const headers = { authorization: `bearer ${secret}` }
    t.match(await (await fetch(`${gateway.opsUrl}/readyz`, { headers })).json(), {
      status: 'ready',
      sessions: 'in this process'
    })
    for (const path of [
      '/ops/api/status',
      '/ops/api/sessions?user=1',
      '/metrics',
      '/openapi.json'
    ]) {
      t.equal((await fetch(gateway.opsUrl + path, { headers })).status, 200, path)
    }
    t.notOk(
      gateway.log.some(line => JSON.stringify(line).includes(secret)),
      'no log line holds the secret'
    )
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
    t.equal((await fetch(gateway.opsUrl + path, { headers: other })).status, status)
    t.same(refused(), [], `${path}: Basic is for a proxy in front`)
    t.equal((await fetch(gateway.opsUrl + path, { headers })).status, status)
    t.match(refused(), [{ address: '127.0.0.1', refused: 1 }], path)
  }
})

t.test('with ops.openMetrics, /metrics alone is answered without the secret', async t => {
  const gateway = await testGateway(t.after, { gateway: { ops: { openMetrics: true } } })
  t.equal((await fetch(`${gateway.opsUrl}/metrics`)).status, 200)
  t.equal((await fetch(`${gateway.opsUrl}/openapi.json`)).status, 401)
})

t.test('the secret is compared as a whole', async t => {
  const { isOperator } = createGuard({ secret, openMetrics: false })
  t.equal(isOperator({ authorization: `Bearer ${secret}` }), true)
  t.equal(isOperator({ authorization: `Bearer ${secret}, Bearer x` }), false)
  t.equal(isOperator({}), false)
})

t.test('commands send the secret of the config, or say that it is another one', async t => {
  const folder = await configFolder({
    gateway: { ops: { listen: `127.0.0.1:${await freePort()}`, secret: '${OPS_SECRET}' } }
  })
  const gateway = await testGateway(t.after, folder, { OPS_SECRET: secret })
  const command = (env: Record<string, string>) => run(['status', '--config', folder], { env })
  t.match(await command({ OPS_SECRET: secret }), { code: 0, out: /^gateway +\d/ })
  t.match(await command({ OPS_SECRET: `${secret}!` }), {
    code: 1,
    err: /^The gateway refused ops\.secret: it was started with another one/
  })
  t.match(await command({}), {
    code: 1,
    err: /gateway\.yaml:\d+ ops\.secret: the environment variable OPS_SECRET is not set/
  })
  t.equal(
    (await askOps(gateway.opsUrl, '/ops/api/status')).status,
    401,
    'and none was left in a file'
  )
})

t.test('without the file that the gateway left, commands say what to do', async t => {
  const folder = await configFolder({
    gateway: { ops: { listen: `127.0.0.1:${await freePort()}` } }
  })
  const gateway = await testGateway(t.after, folder)
  const { file } = (await gateway.logged(line =>
    String(line['msg']).startsWith('ops.secret is not set')
  )) as { file: string }
  const command = () => run(['status', '--config', folder])
  t.match(await command(), { code: 0 })
  writeFileSync(file, 'of a gateway that was here before')
  t.match(await command(), {
    code: 1,
    err: /the secret file on this machine belongs to another gateway/
  })
  rmSync(file)
  t.match(await command(), {
    code: 1,
    err: /this user can read no secret file .* or set ops\.secret in gateway\.yaml/
  })
})

t.test('a short secret, and one that no header field can carry, are faults', async t => {
  for (const weak of [
    'short',
    'a secret with blanks of more than 32 letters',
    `${'x'.repeat(40)}ü`
  ]) {
    const folder = await configFolder({ gateway: { ops: { secret: '${OPS_SECRET}' } } })
    const { code, out, err } = await run(['check', '--config', folder], {
      env: { OPS_SECRET: weak }
    })
    t.equal(code, 1)
    t.match(out + err, /ops\.secret: has to be at least 32 visible ASCII characters/)
    t.notMatch(out + err, weak)
  }
})
