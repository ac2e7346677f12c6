/** The forms in which back-ends take a renewal, a sign-out and a token. */
import t, { type Test } from 'tap'
import type { UpstreamLoginConfig } from '../../src/config/schema/upstream-login.ts'
import { createUpstreamLogin } from '../../src/login/upstream-login.ts'
import type { Credential } from '../../src/session/types.ts'
import {
  credential as held,
  sessionWith,
  signInConfig,
  upstreamOf
} from '../support/upstream-login.ts'
import { json, type Seen, testUpstream } from '../support/upstream.ts'

const refresh = {
  path: '/refresh',
  method: 'POST',
  body: {},
  token: 'token'
} as const

interface Form {
  readonly credentialStyle?: string
  readonly credentialScheme?: string
}

/** The requests of one renewal and one sign-out. */
async function callsOf(
  t: Test,
  config: Partial<UpstreamLoginConfig>,
  { credentialStyle = 'bearer', ...form }: Form = {},
  credential: Credential = held
): Promise<Seen[]> {
  const backend = await testUpstream(t.after, json(200, { token: 'new' }))
  const source = createUpstreamLogin({
    name: 'b',
    config: signInConfig(t.after, config),
    send: upstreamOf(t, backend.url).fetchWhole,
    credentialStyle,
    ...form
  })
  await source.renew?.(sessionWith(credential))
  await source.signOut?.(sessionWith(credential))
  return backend.seen
}

t.test('a renewal by the query, as yudao takes it', async t => {
  const [seen] = await callsOf(t, {
    refresh: { ...refresh, query: { refreshToken: '{refreshToken}', fixed: 'a b' } }
  })
  t.match(seen, { method: 'POST', url: '/refresh?refreshToken=r%26%3D1&fixed=a+b' })
})

t.test('a renewal by a body that must not come with the expired token, as Directus', async t => {
  const [seen] = await callsOf(t, {
    refresh: {
      ...refresh,
      sendCredential: false,
      body: { refresh_token: '{refreshToken}', mode: 'json' }
    }
  })
  t.same(JSON.parse(String(seen?.body)), { refresh_token: 'r&=1', mode: 'json' })
  t.notOk(seen?.headers.authorization)
  t.notOk(seen?.headers.cookie)
})

t.test('a renewal by a form, and by a header', async t => {
  const [form] = await callsOf(t, {
    refresh: { ...refresh, format: 'form', body: { refresh: '{refreshToken}' } }
  })
  t.match(form?.headers, { 'content-type': 'application/x-www-form-urlencoded' })
  t.equal(String(form?.body), 'refresh=r%26%3D1')
  const [header] = await callsOf(t, {
    refresh: { ...refresh, method: 'GET', headers: { 'X-Refresh': 'R {refreshToken}' } }
  })
  t.match(header, { method: 'GET', headers: { 'x-refresh': 'R r&=1' } })
  t.equal(header?.body.length, 0)
})

t.test('a sign-out with a body', async t => {
  const logout = {
    path: '/out',
    method: 'POST',
    body: { refresh_token: '{refreshToken}', access: '{token}', other: '{id}' }
  } as const
  const [seen] = await callsOf(t, { logout })
  t.match(seen, { url: '/out', headers: { 'content-type': 'application/json' } })
  t.same(JSON.parse(String(seen?.body)), {
    refresh_token: 'r&=1',
    access: 't-1',
    other: '{id}'
  })
})

t.test('a token’s word is the one that the upstream wants, as DRF’s Token', async t => {
  const logout = { path: '/out', method: 'POST' } as const
  const cases = [
    [{ credentialScheme: 'Token' }, { authorization: 'Token t-1' }],
    [{}, { authorization: 'Bearer t-1' }],
    [{ credentialStyle: 'header:x-token' }, { 'x-token': 't-1' }],
    [{ credentialStyle: 'header:x-token', credentialScheme: 'JWT' }, { 'x-token': 'JWT t-1' }]
  ] as const
  for (const [form, headers] of cases) {
    const [seen] = await callsOf(t, { logout }, form)
    t.match(seen?.headers, headers)
  }
})

t.test('a token that no header can hold is not sent in one', async t => {
  const headers = { 'x-refresh': '{refreshToken}' }
  const bad = { token: 't', refreshToken: 'a\r\nx-user-id: 1' }
  await t.rejects(callsOf(t, { refresh: { ...refresh, headers } }, {}, bad), {
    code: 'upstream.invalid'
  })
})

t.test('what refuses a renewal may differ from what refuses a sign-in', async t => {
  const backend = await testUpstream(t.after, json(200, { code: 401 }))
  const source = createUpstreamLogin({
    name: 'b',
    config: signInConfig(t.after, {
      outcomes: [{ is: 'refused', path: 'code', in: [1002] }],
      refresh: { ...refresh, refused: { path: 'code', in: [401] } }
    }),
    send: upstreamOf(t, backend.url).fetchWhole,
    credentialStyle: 'bearer'
  })
  t.equal(await source.renew?.(sessionWith(held)), undefined)
})
