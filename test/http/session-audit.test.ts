/** The lines of the audit ledger for sessions that were ended without a sign-out or an operator. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parse, stringify } from 'yaml'
import {
  audit,
  configFolder,
  cookieOf,
  type Files,
  password,
  testGateway
} from '../support/gateway.ts'
import { linesIn } from '../support/ledger.ts'
import { testRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { json, testUpstream } from '../support/upstream.ts'

const start = async (t: Test, files: Files = {}) =>
  await testGateway(t.after, { ...files, gateway: { audit, ...files.gateway } })

/** Waits for so many lines of ended sessions, which are all. */
async function revokedIn(folder: string, count: number) {
  const lines = () => linesIn(folder).filter(({ kind }) => kind === 'sessions.revoked')
  await until('its line is written', () => lines().length >= count)
  return lines()
}

function removeBob(folder: string): void {
  const path = join(folder, 'users.yaml')
  const { users } = parse(readFileSync(path, 'utf8')) as { users: Record<string, unknown> }
  delete users['bob']
  writeFileSync(path, stringify({ users }))
}

t.test('sessions that a user closes, and those that a sign-in replaces, have a line', async t => {
  const { folder, call, signIn, ops } = await start(t, {
    gateway: { session: { perUser: { max: 2 } } }
  })
  const idOf = async (cookie: string): Promise<string> =>
    (await call('/api/session', { cookie })).json.data.id
  const first = await idOf(await signIn())
  const second = await idOf(await signIn())
  const cookie = await signIn()
  const third = await idOf(cookie)
  for (let times = 0; times < 2; times++) {
    await call('/api/session/close', { cookie, json: { others: true } })
  }
  const json = { username: 'alice', password }
  const again = await call('/api/auth/admin/login', { cookie, json })
  await call('/api/account/logout', { method: 'POST', cookie: cookieOf(again) })
  await signIn('bob')
  await ops('/ops/api/sessions/close', { json: { user: 'bob' } })
  await until('the act has its line', () =>
    linesIn(folder).some(({ outcome }) => outcome === 'done')
  )
  const alice = { user: 'alice', userId: '1', source: 'users-file', address: '127.0.0.1' }
  const replaced = { by: 'sign-in', reason: 'replaced' }
  const lines = await revokedIn(folder, 3)
  t.match(lines, [
    { ...alice, session: first, detail: replaced },
    { ...alice, session: second, requestId: /./, detail: { by: 'user', reason: 'revoked' } },
    { ...alice, session: third, requestId: /./, detail: replaced }
  ])
  t.equal(lines.length, 3, 'sign-outs and acts of operators have lines of their own')
})

t.test('a change of the users file has lines for the sessions that it ends', async t => {
  const { folder, signIn, ops } = await start(t)
  for (const name of ['bob', 'bob', 'alice']) await signIn(name)
  removeBob(folder)
  t.equal((await ops('/ops/api/reload', { json: { yes: true } })).status, 200)
  const detail = { by: 'users-file', reason: 'revoked' }
  const line = { user: 'bob', userId: '2', session: /^[\w-]{12}$/, detail }
  t.match(await revokedIn(folder, 2), [line, line])
  const reload = linesIn(folder).find(({ kind }) => kind === 'config.reload')
  t.match(reload, { operator: 'operator', via: 'secret', outcome: 'done' })
})

t.test('users who were removed while the gateway did not run have a line at the start', async t => {
  const redis = await testRedis(t.after)
  const folder = await configFolder({ gateway: { audit }, redis: redis.url })
  const first = await testGateway(() => {}, folder)
  await first.signIn('bob')
  await first.stop({ noticeMs: 0 })
  removeBob(folder)
  await testGateway(t.after, folder)
  t.match(await revokedIn(folder, 1), [{ user: 'bob', detail: { by: 'users-file' } }])
})

t.test('a session whose back-end refuses to renew its token has a line', async t => {
  const backend = await testUpstream(t.after, (...exchange) => {
    const signedIn = { id: '7', token: 'T', refresh: 'R', expiresIn: 1 }
    const answer = exchange[2].url === '/login' ? json(200, signedIn) : json(401, {})
    answer(...exchange)
  })
  const { folder, call, signIn } = await start(t, {
    backend: { url: backend.url, credential: 'bearer' },
    source: {
      token: 'token',
      refreshToken: 'refresh',
      expires: { path: 'expiresIn' },
      refresh: { path: '/renew', body: { refresh: '{refreshToken}' }, token: 'token' }
    },
    routes: { routes: { orders: {} } }
  })
  const cookie = await signIn('carol')
  await until('the session has ended', async () => {
    await call('/api/orders', { cookie })
    return (await call('/api/session', { cookie })).status === 401
  })
  const carol = { user: 'carol', userId: '7', source: 'b', session: /^[\w-]{12}$/ }
  const detail = { by: 'upstream', reason: 'upstream' }
  t.match(await revokedIn(folder, 1), [{ ...carol, detail }])
})
