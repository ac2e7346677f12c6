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

/** The first request of one renewal and one sign-out. */
async function callOf(
  t: Test,
  config: Partial<UpstreamLoginConfig>,
  { credentialStyle = 'bearer', ...form }: Form = {},
  credential: Credential = held
): Promise<Seen | undefined> {
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
  return backend.seen[0]
}

const out = { path: '/out', method: 'POST' } as const
const calls: Record<string, [Partial<UpstreamLoginConfig>, sent: object, body: string, Form?]> = {
  'a renewal by the query, as yudao takes it': [
    { refresh: { ...refresh, query: { refreshToken: '{refreshToken}', fixed: 'a b' } } },
    { method: 'POST', url: '/refresh?refreshToken=r%26%3D1&fixed=a+b' },
    '{}'
  ],
  'a renewal by a body that must not come with the expired token, as Directus': [
    { refresh: { ...refresh, sendCredential: false, body: { token: '{refreshToken}', n: 1 } } },
    { headers: { authorization: undefined, cookie: undefined } },
    '{"token":"r&=1","n":1}'
  ],
  'a renewal by a form': [
    { refresh: { ...refresh, format: 'form', body: { refresh: '{refreshToken}' } } },
    { headers: { 'content-type': 'application/x-www-form-urlencoded' } },
    'refresh=r%26%3D1'
  ],
  'a renewal by a header': [
    { refresh: { ...refresh, method: 'GET', headers: { 'X-Refresh': 'R {refreshToken}' } } },
    { method: 'GET', headers: { 'x-refresh': 'R r&=1' } },
    ''
  ],
  'a sign-out with a body': [
    { logout: { ...out, body: { refresh: '{refreshToken}', of: '{token}', other: '{id}' } } },
    { url: '/out', headers: { 'content-type': 'application/json' } },
    '{"refresh":"r&=1","of":"t-1","other":"{id}"}'
  ],
  'a token’s word is the one that the upstream wants, as DRF’s Token': [
    { logout: out },
    { headers: { authorization: 'Token t-1' } },
    '',
    { credentialScheme: 'Token' }
  ],
  'a token in a header has no word': [
    { logout: out },
    { headers: { 'x-token': 't-1' } },
    '',
    { credentialStyle: 'header:x-token' }
  ],
  'a token in a header has the word that config names': [
    { logout: out },
    { headers: { 'x-token': 'JWT t-1' } },
    '',
    { credentialStyle: 'header:x-token', credentialScheme: 'JWT' }
  ]
}

for (const [name, [config, sent, body, form]] of Object.entries(calls)) {
  t.test(name, async t => {
    const seen = await callOf(t, config, form)
    t.match(seen, sent)
    t.equal(String(seen?.body), body)
  })
}

t.test('a token that no header can hold is not sent in one', async t => {
  const headers = { 'x-refresh': '{refreshToken}' }
  const bad = { token: 't', refreshToken: 'a\r\nx-user-id: 1' }
  await t.rejects(callOf(t, { refresh: { ...refresh, headers } }, {}, bad), {
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
