/** The lines of the audit ledger for sessions that were ended without a sign-out or an operator. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse, stringify } from 'yaml'
import { configFolder, password, testGateway } from '../support/gateway.ts'
import { linesIn } from '../support/ledger.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const env = {
  AUDIT_KEY: 'an audit key of at least thirty-two bytes',
  SESSION_SECRET: 'a session secret of at least thirty-two'
}

const revokedIn = (folder: string) =>
  linesIn(folder).filter(({ kind }) => kind === 'sessions.revoked')

const audit = { key: '${AUDIT_KEY}' }

function changeUsers(folder: string, change: (users: Record<string, any>) => void): void {
  const path = join(folder, 'users.yaml')
  const content = parse(readFileSync(path, 'utf8')) as { users: Record<string, any> }
  change(content.users)
  writeFileSync(path, stringify(content))
}

t.test(
  'own sessions that a user closes, and those that a sign-in replaces, have a line',
  async t => {
    const gateway = await testGateway(
      t.after,
      { gateway: { audit, session: { perUser: { max: 2 }, cookie: { secure: false } } } },
      env
    )
    const { folder } = gateway
    const idOf = async (cookie: string): Promise<string> =>
      (await gateway.call('/api/session', { cookie })).json.data.id
    const first = await idOf(await gateway.signIn())
    const secondCookie = await gateway.signIn()
    const second = await idOf(secondCookie)
    const third = await gateway.signIn()
    await until('the oldest is recorded', () => revokedIn(folder).length === 1)
    t.match(revokedIn(folder), [
      {
        user: 'alice',
        userId: '1',
        source: 'users-file',
        session: first,
        address: '127.0.0.1',
        detail: { by: 'sign-in', reason: 'replaced' }
      }
    ])

    await gateway.call('/api/session/close', { cookie: third, json: { others: true } })
    await gateway.call('/api/session/close', { cookie: third, json: { others: true } })
    await until('its line is written', () => revokedIn(folder).length === 2)
    t.match(revokedIn(folder)[1], {
      user: 'alice',
      session: second,
      requestId: /./,
      detail: { by: 'user', reason: 'revoked' }
    })

    const thirdId = await idOf(third)

    const again = await gateway.call('/api/auth/admin/login', {
      cookie: third,
      json: { username: 'alice', password }
    })
    t.equal(again.status, 200)
    await until('the replaced one is recorded', () => revokedIn(folder).length === 3)
    t.match(revokedIn(folder)[2], {
      session: thirdId,
      requestId: /./,
      detail: { by: 'sign-in', reason: 'replaced' }
    })

    const last = again.headers.getSetCookie()[0]?.split(';', 1)[0] ?? ''
    await gateway.call('/api/account/logout', { method: 'POST', cookie: last })
    await gateway.signIn('bob')
    await gateway.ops('/ops/api/sessions/close', { json: { user: 'bob' } })
    await until('the act has its line', () =>
      linesIn(folder).some(line => line['outcome'] === 'done')
    )
    t.equal(revokedIn(folder).length, 3, 'sign-outs and acts of operators have lines of their own')
  }
)

t.test('a change of the users file has a line for the sessions that it ends', async t => {
  const gateway = await testGateway(t.after, { gateway: { audit } }, env)
  const { folder } = gateway
  await gateway.signIn('bob')
  await gateway.signIn('bob')
  await gateway.signIn('alice')
  changeUsers(folder, users => delete users['bob'])
  const reloaded = await gateway.ops('/ops/api/reload', { json: { yes: true } })
  t.equal(reloaded.status, 200)
  await until('both are recorded', () => revokedIn(folder).length > 1)
  const detail = { by: 'users-file', reason: 'revoked' }
  const line = { user: 'bob', userId: '2', session: /^\w{12}$/, detail }
  t.match(revokedIn(folder), [line, line])
  const reload = linesIn(folder).find(({ kind }) => kind === 'config.reload')
  t.match(reload, { operator: 'operator', via: 'secret', outcome: 'done' })
})

t.test('users who were removed while the gateway did not run have a line at the start', async t => {
  const redis = await testRedis(t.after)
  const folder = await configFolder({
    gateway: { audit, redis: { url: redis.url }, session: { secrets: ['${SESSION_SECRET}'] } }
  })
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const undo: Array<() => unknown> = []
  const first = await testGateway(step => undo.push(step), folder, env)
  await first.signIn('bob')
  await first.stop({ noticeMs: 0 })
  changeUsers(folder, users => delete users['bob'])
  await testGateway(t.after, folder, env)
  await until('it is recorded', () => revokedIn(folder).length === 1)
  t.match(revokedIn(folder), [{ user: 'bob', detail: { by: 'users-file' } }])
})

t.test('a session whose back-end refuses to renew its token has a line', async t => {
  const backend = await testUpstream(t.after, (request, response, { url }) => {
    const signedIn = { id: '7', token: 'T', refresh: 'R', expiresIn: 1 }
    const respond = url === '/login' ? json(200, signedIn) : json(401, {})
    respond(request, response, {} as never)
  })
  const source = {
    kind: 'upstream-login',
    upstream: 'b',
    path: '/login',
    user: { id: 'id' },
    token: 'token',
    refreshToken: 'refresh',
    expires: { path: 'expiresIn' },
    refresh: { path: '/renew', body: { refresh: '{refreshToken}' }, token: 'token' }
  }
  const gateway = await testGateway(
    t.after,
    {
      gateway: { audit, login: { sources: { b: source } } },
      routes: {
        upstreams: { b: { url: backend.url, credential: 'bearer' } },
        routes: { orders: { path: '/api/orders', upstream: 'b' } }
      }
    },
    env
  )
  const cookie = await gateway.signIn('carol')
  await until('the session has ended', async () => {
    await gateway.call('/api/orders', { cookie })
    return (await gateway.call('/api/session', { cookie })).status === 401
  })
  await until('it is recorded', () => revokedIn(gateway.folder).length === 1)
  t.match(revokedIn(gateway.folder), [
    {
      user: 'carol',
      userId: '7',
      source: 'b',
      session: /^[\w-]{12}$/,
      detail: { by: 'upstream', reason: 'upstream' }
    }
  ])
})
