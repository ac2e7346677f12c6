/**
 * Response headers: what the inside says of itself is not told, and policies and caching are the
 * gateway's.
 */
import t from 'tap'
import { password, testGateway } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'
import { testUpstream } from '../support/upstream.ts'
import { inside, isEnvelope, loginPath } from '../support/wire.ts'

type Fields = ReadonlyArray<readonly [name: string, value: string]>

let fields: Fields = []
const backend = await testUpstream(t.after, (_request, response) => {
  response.writeHead(200, [['Content-Type', 'application/json'], ...fields].flat()).end('{"a":[1]}')
})
const origin = 'https://console.example.com'
const route = (name: string, more: object = {}) => ({
  [name]: { path: `/api/${name}`, upstream: 'b', ...more }
})
const gateway = await testGateway(t.after, {
  gateway: { server: { origins: [origin] } },
  routes: {
    upstreams: { b: { url: backend.url } },
    shapes: { s: [{ unwrap: 'a' }, { wrap: 'list' }] },
    routes: {
      ...route('open', { access: 'public' }),
      ...route('shaped', { access: 'public', shape: 's' }),
      ...route('theme', { access: 'public', setCookies: ['theme'] }),
      ...route('other'),
      ...route('kept', { cache: 'browser' }),
      ...route('kept-shaped', { cache: 'browser', shape: 's' })
    }
  }
})
const cookie = await gateway.signIn()

async function headersOf(path: string, given: Fields, headers: Record<string, string> = {}) {
  fields = given
  const answer = await gateway.call(path, { cookie, headers })
  t.equal(answer.status, 200, path)
  return answer.headers
}

const dropped: Fields = [
  ['X-Hop', 'one'],
  ['X-Second', 'two'],
  ['Server', 'Inner/1.2'],
  ['X-Powered-By', 'Inner'],
  ['Via', '1.1 inner.local'],
  ['X-AspNet-Version', '4'],
  ['X-Runtime', '0.1'],
  ['Proxy-Authenticate', 'Basic'],
  ['WWW-Authenticate', 'Basic realm="inner"'],
  ['X-Internal-Node', 'inner-7'],
  ['X-Envoy-Upstream-Service-Time', '3'],
  ['X-Amzn-Trace-Id', '1'],
  ['X-Debug-Token', '1'],
  ['New-Token', 'renewed'],
  ['X-Sendfile', '/etc'],
  ['Service-Worker-Allowed', '/'],
  ['Access-Control-Allow-Origin', '*'],
  ['Access-Control-Allow-Private-Network', 'true'],
  ['Strict-Transport-Security', 'max-age=0'],
  ['Clear-Site-Data', '"*"'],
  ['Alt-Svc', 'h3=":1"'],
  ['Refresh', '0;url=http://evil.example'],
  ['Set-Cookie', 'inner=1'],
  ['Set-Cookie2', 'inner=1'],
  ['Location', 'http://inner.local/'],
  ['X-Accel-Redirect', '/etc'],
  ['Content-Security-Policy-Report-Only', 'default-src *']
]
const replaced: Fields = [
  ['Connection', 'X-Hop, keep-alive'],
  ['Connection', 'a , X-Second'],
  ['Keep-Alive', 'timeout=99'],
  ['X-Content-Type-Options', 'sniff'],
  ['Content-Security-Policy', "default-src * 'unsafe-inline'"],
  ['Referrer-Policy', 'unsafe-url'],
  ['X-Request-Id', 'theirs']
]
const kept: Fields = [
  ['X-Total-Count', '7'],
  ['Content-Language', 'zh-CN'],
  ['Content-Disposition', 'attachment'],
  ['X-Third', '3']
]

t.test(
  'an answer tells neither what runs behind it nor what belongs to the inner connection',
  async t => {
    for (const path of ['/api/open', '/api/other', '/api/shaped']) {
      const headers = await headersOf(path, [...dropped, ...replaced, ...kept])
      for (const [name] of dropped) t.equal(headers.get(name), null, `${name} ${path}`)
      t.not(headers.get('keep-alive'), 'timeout=99')
      t.match(Object.fromEntries(headers), {
        ...Object.fromEntries(kept.map(([name, value]) => [name.toLowerCase(), value])),
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
        'referrer-policy': 'same-origin',
        'x-request-id': /^[0-9a-f-]{36}$/
      })
    }
  }
)

t.test('what it varies by is said by both, each name once', async t => {
  for (const [varies, said] of [
    ['Accept-Language, origin', 'Origin, Accept-Language'],
    ['Accept', 'Origin, Accept'],
    ['Accept,', 'Origin, Accept'],
    ['Accept, *', '*']
  ] as const) {
    for (const path of ['/api/open', '/api/shaped']) {
      const headers = await headersOf(path, [['Vary', varies]], { origin })
      t.equal(headers.get('vary'), said, `${varies} ${path}`)
    }
  }
})

t.test('an upstream sets only the cookies that the route names', async t => {
  const given = [
    'sid=1; Path=/; HttpOnly',
    'theme=dark; Path=/',
    'themes=no',
    'Theme=no',
    '\u00a0theme=no',
    'theme',
    '=theme',
    'console_sid=fixed',
    'Console_sid=fixed',
    '__Host-console_sid=fixed',
    'theme=light'
  ]
  const cookies = given.map(value => ['Set-Cookie', value] as const)
  t.same((await headersOf('/api/open', cookies)).getSetCookie(), [])
  const passed = (await headersOf('/api/theme', cookies)).getSetCookie()
  t.same(passed, ['theme=dark; Path=/', 'theme=light'])
  t.same((await headersOf('/api/theme', [['Set-Cookie', 'sid=1']])).getSetCookie(), [])
})

t.test('how long an answer may be kept is the upstream’s to say on public routes only', async t => {
  const fresh = 'public, max-age=60, s-maxage=600, immutable'
  const caching: Fields = [
    ['Cache-Control', fresh],
    ['Expires', 'x'],
    ['Pragma', 'x'],
    ['Age', '3']
  ]
  const said = async (path: string) => {
    const headers = await headersOf(path, caching)
    return ['cache-control', 'expires', 'pragma', 'age'].map(name => headers.get(name))
  }
  t.same(await said('/api/open'), [fresh, 'x', 'x', '3'])
  t.same(await said('/api/other'), ['no-store', null, null, null])
})

t.test('`cache: browser`: the browser may keep it for its user, shared caches may not', async t => {
  for (const [control, said] of [
    ['public, max-age=60, s-maxage=600, immutable', 'private, max-age=60, immutable'],
    ['no-cache="set-cookie", max-age="5"', 'private, no-cache, max-age="5"'],
    ['no-store', 'private, no-store']
  ] as const) {
    const given: Fields = [
      ['Cache-Control', control],
      ['Vary', 'Accept-Language']
    ]
    const headers = await headersOf('/api/kept', given)
    t.same(
      [headers.get('cache-control'), headers.get('vary')?.replace('Origin, ', '')],
      [said, 'Accept-Language, Cookie']
    )
  }
  t.equal((await headersOf('/api/kept', [])).get('cache-control'), 'no-store')
  const given: Fields = [['Cache-Control', 'public, max-age=60, immutable']]
  const shaped = await headersOf('/api/kept-shaped', given)
  t.equal(shaped.get('cache-control'), 'private, max-age=60, immutable')
})

t.test('every answer is held from sniffing, framing and caches, and shows no version', async t => {
  fields = []
  const answers = await Promise.all([
    gateway.call('/api/other', { cookie }),
    gateway.call('/api/other'),
    gateway.call('/api/account/profile', { cookie }),
    gateway.call('/api/nothing'),
    gateway.call('/'),
    gateway.call('/api/open'),
    gateway.call(loginPath),
    gateway.call(loginPath, { json: { username: 'alice', password } }),
    gateway.call(loginPath, { json: { username: 'alice', password: 'no' } }),
    gateway.call('/api/account/logout'),
    gateway.call('/api//x'),
    gateway.call(loginPath, {
      method: 'POST',
      body: '{',
      headers: { 'content-type': 'application/json' }
    })
  ])
  for (const { headers, status, text } of answers) {
    t.match(
      Object.fromEntries(headers),
      {
        'x-content-type-options': 'nosniff',
        'referrer-policy': /^(?:no-referrer|same-origin)$/,
        'content-security-policy': /frame-ancestors 'none'/,
        'cache-control': 'no-store'
      },
      `${status} ${text.slice(0, 40)}`
    )
    t.equal(headers.get('server') ?? headers.get('x-powered-by'), null)
    t.notMatch(text, inside)
    if (status >= 400) isEnvelope(t, text)
  }
  const broken = await raw(gateway.url, 'broken\r\n\r\n')
  t.match(broken.head, /x-content-type-options: nosniff/)
  t.match(broken.head, /cache-control: no-store/)
})

t.end()
