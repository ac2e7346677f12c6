import t from 'tap'
import { requestHeaders } from '../../src/proxy/request-headers.ts'
import { tokenNamesOf } from '../../src/proxy/token-names.ts'

const none = { tokenHeaders: [], tokenCookies: [], tokenQuery: [] }
const { query } = tokenNamesOf({ ...none, tokenQuery: ['token', 'X-Access.Token'] })
const strip = (text: string) => query?.strip(text)

t.test('a query without the console’s token passes byte for byte', async t => {
  for (const text of [
    '',
    '?',
    '?a=%41&&b=1;c',
    '?tokens=1&my-token=2',
    '?a=token',
    '?a[token]=1'
  ]) {
    t.equal(strip(text), text)
  }
})

t.test('the console’s token leaves a query, and the rest stays as it is', async t => {
  t.equal(strip('?token=R'), '')
  t.equal(strip('?token'), '')
  t.equal(strip('?a=%41&token=R&b=+1'), '?a=%41&b=+1')
  t.equal(strip('?token=R&a=1&token=S'), '?a=1')
})

t.test('no spelling that a lenient back-end takes for the name comes through', async t => {
  const spellings = [
    'TOKEN',
    'to%6ben',
    'to%6Ben',
    '%u0074oken',
    '+token',
    'token%20',
    'token%00x',
    'to%FFken',
    'token%E2%80%8B',
    'tok%C2%ADen',
    'token%C2%80',
    'tok%C3%A9en',
    'token[]',
    'token%5B0%5D',
    '%5btoken]',
    'token[a]',
    'x-access.token',
    'x-access_token',
    'x-access%20token'
  ]
  for (const name of spellings) t.equal(strip(`?a=1&${name}=R&b=2`), '?a=1&b=2', name)
  t.equal(strip('?a=1;token=R&b=2'), '?a=1&b=2', 'a semicolon separates for some')
  t.equal(strip('?token=R;a=1'), '?a=1')
})

t.test('without names nothing is done', async t => {
  t.equal(tokenNamesOf(none).query, undefined)
})

t.test('the token passes in no header and no cookie, whatever else lets it pass', async t => {
  const toHeaders = requestHeaders({
    identity: { id: 'x-user-id', username: 'x-user-name', roles: 'x-user-roles', prefix: false },
    upstream: { identity: false, credential: 'none', passHeaders: ['x-access-token', 'accept'] },
    credentialFor: () => undefined,
    passCookies: ['Admin-Token', 'theme'],
    passHeaders: ['authorization', 'x-auth-token'],
    tokenNames: tokenNamesOf({
      tokenHeaders: ['authorization', 'x-access-token', 'x-auth-token'],
      tokenCookies: ['Admin-Token'],
      tokenQuery: []
    }),
    shaped: false
  })
  const caller = {
    address: '192.0.2.1',
    protocol: 'http',
    host: undefined,
    requestId: 'r',
    session: undefined
  }
  const sent = toHeaders(
    {
      'authorization': 'Bearer R',
      'x-access-token': 'R',
      'x-auth-token': 'R',
      'accept': '*/*',
      'cookie': 'Admin-Token=R; theme=dark'
    },
    caller,
    false,
    true
  )
  t.same(sent, {
    'accept': '*/*',
    'cookie': 'theme=dark',
    'x-request-id': 'r',
    'x-forwarded-for': '192.0.2.1',
    'x-forwarded-proto': 'http'
  })
})
