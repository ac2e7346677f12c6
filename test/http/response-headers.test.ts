/** Response headers: nothing of the inside is told; policies and caching are the gateway's. */
import t from 'tap'
import { password, testGateway } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'
import { testUpstream } from '../support/upstream.ts'
import { inside, isEnvelope, loginPath } from '../support/wire.ts'

type Fields = ReadonlyArray<readonly [name: string, value: string]>

let fields: Fields = []
const backend = await testUpstream(t.teardown, (_request, response) => {
  const head = [['Content-Type', 'application/json'], ...fields].flat()
  response.writeHead(200, head).end(Buffer.from('{"a":[1]}'))
})
const origin = 'https://console.example.com'
const open = { access: 'public' }
const browser = { cache: 'browser' }
const gateway = await testGateway(t.teardown, {
  gateway: { server: { origins: [origin] } },
  backend: backend.url,
  routes: {
    shapes: { s: [{ unwrap: 'a' }, { wrap: 'list' }] },
    routes: {
      open,
      'shaped': { ...open, shape: 's' },
      'theme': { ...open, setCookies: ['theme'] },
      'other': {},
      'framed': { ...open, framedByConsole: true },
      'kept': browser,
      'kept-shaped': { ...browser, shape: 's' }
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

const dropped = `
  X-Hop X-Second Server X-Powered-By Via X-AspNet-Version X-Runtime Proxy-Authenticate
  WWW-Authenticate X-Internal-Node X-Envoy-Upstream-Service-Time X-Amzn-Trace-Id X-Debug-Token
  New-Token X-Sendfile Service-Worker-Allowed Access-Control-Allow-Origin Set-Cookie Set-Cookie2
  Access-Control-Allow-Private-Network Strict-Transport-Security Clear-Site-Data Alt-Svc Refresh
  Location X-Accel-Redirect Content-Security-Policy-Report-Only
`
  .trim()
  .split(/\s+/)
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
  ['Content-Disposition', Buffer.from('attachment; filename=报表.xlsx').toString('latin1')],
  ['X-Third', '3']
]

t.test('an answer tells neither what runs behind it nor of the inner connection', async t => {
  const inner: Fields = dropped.map(name => [name, 'http://inner.local/'])
  for (const path of ['/api/open', '/api/other', '/api/shaped']) {
    const headers = await headersOf(path, [...inner, ...replaced, ...kept])
    for (const name of dropped) t.equal(headers.get(name), null, `${name} ${path}`)
    t.not(headers.get('keep-alive'), 'timeout=99')
    t.match(Object.fromEntries(headers), {
      ...Object.fromEntries(kept.map(([name, value]) => [name.toLowerCase(), value])),
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'referrer-policy': 'same-origin',
      'x-request-id': /^[0-9a-f-]{36}$/
    })
  }
})

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
    ...['sid=1; Path=/; HttpOnly', 'theme=dark; Path=/', 'themes=no', 'Theme=no', '\u00a0theme=no'],
    ...['theme', '=theme', 'console_sid=fixed', '__Host-console_sid=fixed', 'theme=light']
  ]
  const cookies = given.map(value => ['Set-Cookie', value] as const)
  t.same((await headersOf('/api/open', cookies)).getSetCookie(), [])
  const passed = (await headersOf('/api/theme', cookies)).getSetCookie()
  t.same(passed, ['theme=dark; Path=/', 'theme=light'])
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
  const fresh = 'public, max-age=60, s-maxage=600, immutable'
  for (const [path, control, said] of [
    ['/api/kept', fresh, 'private, max-age=60, immutable'],
    ['/api/kept-shaped', fresh, 'private, max-age=60, immutable'],
    ['/api/kept', 'no-cache="set-cookie", max-age="5"', 'private, no-cache, max-age="5"'],
    ['/api/kept', 'no-store', 'private, no-store']
  ] as const) {
    const headers = await headersOf(path, [
      ['Cache-Control', control],
      ['Vary', 'Accept-Language']
    ])
    t.equal(headers.get('cache-control'), said)
    t.match(headers.get('vary'), /Accept-Language, Cookie$/)
  }
  t.equal((await headersOf('/api/kept', [])).get('cache-control'), 'no-store')
})

t.test('case 12: a route may let the console show its files in a frame', async t => {
  fields = [['Content-Type', 'application/pdf']]
  const { headers } = await gateway.call('/api/framed')
  t.equal(headers.get('content-security-policy'), `frame-ancestors 'self' ${origin}`)
})

t.test('every answer is held from sniffing, framing and caches, and shows no version', async t => {
  fields = []
  const right = { username: 'alice', password }
  const broken = { body: '{', headers: { 'content-type': 'application/json' } }
  const answers = await Promise.all([
    ...['/api/other', '/api/account/profile'].map(path => gateway.call(path, { cookie })),
    ...['/api/other', '/api/nothing', '/', '/api/open', loginPath, '/api//x'].map(path =>
      gateway.call(path)
    ),
    ...[{ json: right }, { json: { ...right, password: 'no' } }, broken].map(options =>
      gateway.call(loginPath, { method: 'POST', ...options })
    ),
    gateway.call('/api/account/logout')
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
  const { head } = await raw(gateway.url, 'broken\r\n\r\n')
  t.match(head, /cache-control: no-store[^]*x-content-type-options: nosniff/)
})
