import type { IncomingHttpHeaders } from 'node:http'
import t from 'tap'
import {
  type ForwardedFor,
  requestHeaders,
  type RequestHeaderOptions
} from '../../src/proxy/request-headers.ts'
import { joinedVary, responseHeaders } from '../../src/proxy/response-headers.ts'
import { tokenNamesOf } from '../../src/proxy/token-names.ts'
import type { Identity, Session } from '../../src/session/types.ts'

const identity = { id: 'x-user-id', username: 'x-user-name', roles: 'x-user-roles', prefix: false }
const alice: Identity = {
  id: '7',
  username: 'alice',
  name: 'Alice',
  roles: ['admin', 'user'],
  profile: {}
}
const session = (over: Partial<Session> = {}): Session => ({
  id: 's',
  identity: alice,
  source: 'users-file',
  remembered: false,
  createdAt: 0,
  idleMs: 1,
  address: '',
  agent: '',
  ...over
})
const caller = (over: Partial<ForwardedFor> = {}): ForwardedFor => ({
  address: '192.0.2.7',
  protocol: 'https',
  host: 'console.example.com',
  requestId: 'req-1',
  session: session(),
  ...over
})
interface Over extends Partial<Omit<RequestHeaderOptions, 'upstream'>> {
  readonly tellIdentity?: boolean
  readonly credential?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** @param over what is not as usual; the last three are keys of the upstream */
function optionsOf(over: Over = {}): RequestHeaderOptions {
  const { tellIdentity = true, credential = 'none', headers, ...others } = over
  const upstream = {
    identity: tellIdentity,
    credential,
    ...(headers && { headers })
  }
  return {
    identity,
    credentialFor: ({ credential }) => credential,
    passCookies: [],
    passHeaders: [],
    tokenNames: tokenNamesOf({ tokenHeaders: [], tokenCookies: [], tokenQuery: [] }),
    shaped: false,
    ...others,
    upstream
  }
}
const own = {
  'x-request-id': 'req-1',
  'x-forwarded-for': '192.0.2.7',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'console.example.com',
  'x-user-id': '7',
  'x-user-name': 'alice',
  'x-user-roles': 'admin,user'
}

/** What the upstream gets, without a body unless `over` says so. */
const sent = (
  headers: IncomingHttpHeaders,
  over: Over = {},
  who: Partial<ForwardedFor> = {},
  hasBody = false,
  isRead = !hasBody
) => requestHeaders(optionsOf(over))(headers, caller(who), hasBody, isRead)

t.test('the upstream is told who asks, from where, and under which request id', async t => {
  t.same(sent({ host: 'console.example.com' }), own)
})

t.test('a console’s own extra fields pass, and so does what every client sends', async t => {
  const extra = {
    'accept': 'application/json',
    'accept-language': 'zh-CN',
    'accept-encoding': 'gzip',
    'user-agent': 'Mozilla/5.0',
    'referer': 'https://console.example.com/',
    'origin': 'https://console.example.com',
    'x-requested-with': 'XMLHttpRequest',
    'x-xsrf-token': 't',
    'x-csrf-token': 't',
    'x-tenant-id': '12',
    'x-locale': 'de',
    'if-none-match': '"1"',
    'cache-control': 'no-cache',
    'traceparent': '00-1-2-03',
    'range': 'bytes=0-1'
  }
  t.same(sent(extra), { ...extra, ...own })
})

t.test('a field name with an underscore never crosses, whatever it is', async t => {
  t.same(
    sent({
      'x_request_id': 'a',
      'accept_language': 'b',
      '_': 'c',
      'x-user_id': 'd',
      'content_length': '5',
      '__proto__x': 'e'
    }),
    own
  )
})

t.test('nor does one with any other character that CGI-like back-ends read as a dash', async t => {
  t.same(
    sent({ 'x.user.id': 'a', 'x-user.id': 'b', 'x~user': 'c', 'accept!language': 'd', 'x.y': 'e' }),
    own
  )
})

t.test(
  'names of the identity fields that config chose are as closed as the usual ones',
  async t => {
    const mine = { id: 'x-staff', username: 'x-staff-login', roles: 'x-staff-may', prefix: false }
    t.match(sent({ 'x-staff': 'mallory', 'x-staff-may': 'all' }, { identity: mine }), {
      'x-staff': '7',
      'x-staff-login': 'alice',
      'x-staff-may': 'admin,user'
    })
    for (const over of [{ tellIdentity: false }, {}]) {
      t.notMatch(
        JSON.stringify(
          sent(
            { 'x-staff': 'mallory', 'x-staff-may': 'mallory' },
            { identity: mine, ...over },
            { session: undefined }
          )
        ),
        'mallory'
      )
    }
  }
)

t.test(
  'an upstream tells users of two sources apart, by the source’s own field or by the id',
  async t => {
    const withSource = { ...identity, source: 'x-from' }
    t.same(sent({ 'x-from': 'mallory' }, { identity: withSource }), {
      ...own,
      'x-from': 'users-file'
    })
    t.notMatch(
      JSON.stringify(
        sent({ 'x-from': 'mallory' }, { identity: withSource }, { session: undefined })
      ),
      'mallory'
    )
    t.same(sent({}, { identity: { ...identity, prefix: true } }), {
      ...own,
      'x-user-id': 'users-file/7'
    })
  }
)

t.test('nothing that a client lists in Connection makes us drop what we add (B05)', async t => {
  const listed =
    'close, X-User-Id, x-user-roles , X-FORWARDED-FOR,x-request-id, authorization, cookie, x-token'
  t.match(
    sent(
      { connection: listed, cookie: 'theme=dark' },
      { credential: 'bearer', passCookies: ['theme'] },
      { session: session({ credential: { token: 't1' } }) }
    ),
    { ...own, authorization: 'Bearer t1', cookie: 'theme=dark' }
  )
  t.match(
    sent(
      { connection: listed },
      { credential: 'header:x-token' },
      { session: session({ credential: { token: 't1' } }) }
    ),
    { ...own, 'x-token': 't1' }
  )
})

t.test('the client’s request id is not the upstream’s', async t => {
  t.equal(sent({ 'x-request-id': 'chosen' })['x-request-id'], 'req-1')
})

t.test('no cookie of the client crosses, but those that the route names (B10)', async t => {
  const cookie =
    '__Host-console_sid=secret.sig; theme=dark;TOKEN__=old; lang="de"; themes=x; =theme; theme'
  t.notOk('cookie' in sent({ cookie }))
  t.equal(sent({ cookie }, { passCookies: ['theme'] })['cookie'], 'theme=dark')
  t.equal(sent({ cookie }, { passCookies: ['lang', 'theme'] })['cookie'], 'theme=dark; lang="de"')
  t.notOk('cookie' in sent({ cookie: 'other=1' }, { passCookies: ['theme'] }))
  t.notOk('cookie' in sent({ cookie: 'theme; =x; ;' }, { passCookies: ['theme'] }))
})

t.test('a cookie whose name only looks alike is not the one that the route names', async t => {
  for (const cookie of [
    '\u00a0theme=x',
    'theme\u00a0=x',
    'Theme=x',
    '\u000btheme=x',
    'theme\u3000=x',
    '__Host-theme=x'
  ]) {
    t.notOk('cookie' in sent({ cookie }, { passCookies: ['theme'] }), JSON.stringify(cookie))
  }
  t.equal(
    sent({ cookie: ' \ttheme =dark\t ' }, { passCookies: ['theme'] })['cookie'],
    'theme =dark'
  )
})

t.test('the client’s Authorization is dropped, unless the route passes it (B13)', async t => {
  t.notOk('authorization' in sent({ authorization: 'Bearer stale' }))
  t.equal(
    sent({ authorization: 'Bearer own' }, { passHeaders: ['authorization'] })['authorization'],
    'Bearer own'
  )
})

t.test(
  'the session’s credential goes out in the style of the upstream, and in no other',
  async t => {
    const who = { session: session({ credential: { token: 't1', cookies: 'sid=1; csrf=2' } }) }
    const styles: ReadonlyArray<readonly [credential: string, expected: Record<string, string>]> = [
      ['none', { 'x-token': 'client' }],
      ['bearer', { 'x-token': 'client', 'authorization': 'Bearer t1' }],
      ['cookies', { 'x-token': 'client', 'cookie': 'sid=1; csrf=2' }],
      ['header:x-token', { 'x-token': 't1' }],
      ['header:authorization', { 'x-token': 'client', 'authorization': 't1' }]
    ]
    for (const [credential, expected] of styles) {
      t.same(
        sent(
          { 'authorization': 'Bearer stale', 'x-token': 'client', 'cookie': 'sid=client' },
          { credential },
          who
        ),
        { ...own, ...expected },
        credential
      )
    }
  }
)

t.test('without a credential in the session nothing of the client’s takes its place', async t => {
  for (const credential of ['bearer', 'cookies', 'header:x-token', 'header:authorization']) {
    for (const who of [session(), undefined]) {
      const fields = sent(
        { 'authorization': 'Bearer forged', 'x-token': 'forged', 'cookie': 'sid=forged' },
        { credential },
        { session: who }
      )
      t.notOk('authorization' in fields, credential)
      t.notOk('cookie' in fields, credential)
      if (credential === 'header:x-token') t.notOk('x-token' in fields)
    }
  }
})

t.test('cookies that the route names stand beside the session’s', async t => {
  const who = { session: session({ credential: { cookies: 'sid=1' } }) }
  t.equal(
    sent(
      { cookie: 'theme=dark; sid=forged' },
      { credential: 'cookies', passCookies: ['theme'] },
      who
    )['cookie'],
    'theme=dark; sid=1'
  )
})

t.test(
  'where a route passes the client’s Authorization, it is not replaced; without one the session’s goes',
  async t => {
    const who = { session: session({ credential: { token: 't1' } }) }
    t.equal(
      sent(
        { authorization: 'Bearer own' },
        { credential: 'bearer', passHeaders: ['authorization'] },
        who
      )['authorization'],
      'Bearer own'
    )
    t.equal(
      sent({}, { credential: 'bearer', passHeaders: ['authorization'] }, who)['authorization'],
      'Bearer t1'
    )
  }
)

t.test('an upstream that is not to be told who asks is told nothing', async t => {
  const fields = sent({}, { tellIdentity: false })
  for (const name of [identity.id, identity.username, identity.roles]) t.notOk(name in fields)
})

t.test(
  'a name in any script is percent-encoded and can be decoded; plain ASCII stays as it is',
  async t => {
    const names: Readonly<Record<string, string>> = {
      'alice': 'alice',
      'O\'Neil, "A" <x>; y=z': 'O\'Neil, "A" <x>; y=z',
      '张伟': '%E5%BC%A0%E4%BC%9F',
      'Ünï': '%C3%9Cn%C3%AF',
      '100%': '100%25',
      '%41': '%2541',
      'a\r\nx-user-roles: admin': 'a%0D%0Ax-user-roles%3A%20admin',
      'a\u0000b': 'a%00b',
      '\u007f': '%7F',
      '': ''
    }
    for (const [username, expected] of Object.entries(names)) {
      const value = sent({}, {}, { session: session({ identity: { ...alice, username } }) })[
        'x-user-name'
      ]
      t.equal(value, expected, JSON.stringify(username))
      t.equal(decodeURIComponent(String(value)), username)
    }
    t.equal(
      sent({}, {}, { session: session({ identity: { ...alice, id: 'a\ud800b' } }) })['x-user-id'],
      'a%EF%BF%BDb'
    )
  }
)

t.test(
  'a name with blanks around it does not become another’s: a header would lose them',
  async t => {
    const roles = (given: string[]) =>
      sent(
        {},
        {},
        { session: session({ identity: { ...alice, id: ' 7', username: 'admin ', roles: given } }) }
      )
    t.match(roles([]), { 'x-user-id': '%207', 'x-user-name': 'admin%20', 'x-user-roles': '' })
    t.equal(roles([' admin', 'user '])['x-user-roles'], '%20admin,user%20')
  }
)

t.test('a role with a comma is one role', async t => {
  const sentRoles = (roles: string[]) =>
    String(sent({}, {}, { session: session({ identity: { ...alice, roles } }) })['x-user-roles'])
  for (const roles of [['a,b', 'c'], ['a%2Cb'], ['admin,user'], ['管理员,x', 'y'], ['x y', 'z']]) {
    const written = sentRoles(roles)
    t.same(written.split(',').map(decodeURIComponent), roles, written)
  }
})

t.test('length and type of a body go with a body only', async t => {
  const headers = { 'content-length': '5', 'content-type': 'application/json' }
  t.match(sent(headers, {}, {}, true), headers)
  const without = sent(headers)
  t.notOk('content-length' in without)
  t.notOk('content-type' in without)
})

t.test('an answer that is to be shaped is asked for whole and uncompressed', async t => {
  const fields = sent(
    { 'accept-encoding': 'br', 'range': 'bytes=0-1', 'if-range': '"x"', 'accept': '*/*' },
    { shaped: true }
  )
  t.equal(fields['accept-encoding'], 'identity')
  t.equal(fields['accept'], '*/*')
  t.notOk('range' in fields)
  t.notOk('if-range' in fields)
})

t.test('conditions about the unshaped answer stay here, those on a change go on', async t => {
  const conditions = {
    'if-none-match': '"1"',
    'if-modified-since': 'x',
    'if-match': '"2"',
    'if-unmodified-since': 'y'
  }
  t.same(
    Object.keys(sent(conditions, { shaped: true })).filter(name => name.startsWith('if-')),
    ['if-match', 'if-unmodified-since']
  )
  t.match(sent(conditions, { shaped: true }, {}, true), conditions)
  t.match(sent(conditions), conditions)
})

t.test('thousands of field names that clients made up change nothing for the next one', async t => {
  const fields = requestHeaders(optionsOf())
  for (let index = 0; index < 5000; index++) {
    fields({ [`x-made-up-${index}`]: '1' }, caller(), false, true)
  }
  t.same(
    fields(
      { 'x-user-id': 'mallory', 'x-tenant': '1', 'x-made-up-4999': '2' },
      caller(),
      false,
      true
    ),
    { ...own, 'x-tenant': '1', 'x-made-up-4999': '2' }
  )
})

const answered = (
  headers: Record<string, string | string[] | undefined>,
  over: Partial<Parameters<typeof responseHeaders>[0]> = {}
) => responseHeaders({ setCookies: [], mayCache: false, ...over })(headers)

t.test('an upstream’s answer keeps its own fields', async t => {
  const fields = {
    'content-type': 'application/json',
    'content-length': '5',
    'etag': '"1"',
    'last-modified': 'x',
    'content-disposition': 'attachment',
    'x-total-count': '12',
    'link': ['<a>', '<b>']
  }
  t.same(answered(fields), fields)
})

t.test(
  'what is bound to the upstream’s connection ends here, in each of its Connection fields (B15)',
  async t => {
    t.same(
      answered({
        'connection': ['a', 'x-one , X-Two'],
        'x-one': '1',
        'x-two': '2',
        'x-three': '3'
      }),
      { 'x-three': '3' }
    )
  }
)

t.test('how long an answer may be kept is the upstream’s to say on public routes only', async t => {
  const caching = {
    'cache-control': 'public, max-age=60',
    'expires': 'x',
    'pragma': 'x',
    'age': '3'
  }
  t.same(answered(caching), {})
  t.same(answered(caching, { mayCache: true }), caching)
})

t.test('an upstream sets only the cookies that the route names', async t => {
  const given = [
    'sid=1; Path=/; HttpOnly',
    'theme=dark',
    ' theme=x',
    'themes=no',
    'Theme=no',
    '\u00a0theme=no',
    'theme',
    '=theme',
    '__Host-console_sid=fixed'
  ]
  t.notOk('set-cookie' in answered({ 'set-cookie': given }))
  t.same(answered({ 'set-cookie': given }, { setCookies: ['theme'] })['set-cookie'], [
    'theme=dark',
    ' theme=x'
  ])
  t.same(answered({ 'set-cookie': 'theme=1; Path=/' }, { setCookies: ['theme'] })['set-cookie'], [
    'theme=1; Path=/'
  ])
  t.notOk('set-cookie' in answered({ 'set-cookie': ['sid=1'] }, { setCookies: ['theme'] }))
})

t.test('what an answer varies by is said by both sides, each name once', async t => {
  t.equal(joinedVary('Origin', 'Accept, origin'), 'Origin, Accept')
  t.equal(joinedVary(undefined, ['Accept', 'Accept-Language']), 'Accept, Accept-Language')
  t.equal(joinedVary('Origin', 'Accept-Encoding', 'accept-encoding'), 'Origin')
  t.equal(joinedVary('Origin', 'Accept, *'), '*')
  t.equal(joinedVary(undefined, 'Accept-Encoding,', 'accept-encoding'), undefined)
})

t.test('values of the profile are headers, and a client’s own of these names never pass', t => {
  const headers = {
    'x-tenant-id': '{profile.tenant.id}',
    'x-dept': '{profile.dept}',
    'x-none': '{profile.missing}',
    'x-object': '{profile.tenant}',
    'x-literal': '{id}'
  }
  const profile = { tenant: { id: 42 }, dept: '财务 , x' }
  const who = { session: session({ identity: { ...alice, profile } }) }
  const forged = { 'x-tenant-id': '1', 'x-dept': 'all', 'x-none': 'y', 'X-Tenant-Id': '2' }
  const fields = sent(forged, { headers }, who)
  t.match(fields, { 'x-tenant-id': '42', 'x-dept': '%E8%B4%A2%E5%8A%A1%20%2C%20x' })
  for (const name of ['x-none', 'x-object', 'x-literal', 'X-Tenant-Id']) {
    t.notOk(name in fields, name)
  }
  const nobody = sent(forged, { headers }, { session: undefined })
  t.notOk('x-tenant-id' in nobody)
  t.end()
})
