/** What `check` says of upstreams and routes, beside the cases of rules.yaml. */
import t from 'tap'
import { reportsOf } from '../../support/config-files.ts'

const b = { url: 'http://127.0.0.1:9' }
const isFault = (report: string) => !report.includes(': warning: ')

interface Over {
  readonly envelope?: object
  readonly upstream?: object
  readonly route?: object
}

/** Of a route `r` to an upstream `b`. */
const routeReports = ({ envelope = {}, upstream = {}, route = {} }: Over) =>
  reportsOf({
    gateway: { envelope },
    routes: {
      upstreams: { b: { ...b, ...upstream } },
      routes: { r: { path: '/api/r', upstream: 'b', ...route } }
    }
  })

t.test('an upstream has either of them, and its addresses are alike', async t => {
  const faults = (upstream: object) =>
    reportsOf({
      routes: { upstreams: { b: upstream }, routes: { r: { path: '/api/r', upstream: 'b' } } }
    }).filter(isFault)
  const cases: Array<[upstream: object, fault: RegExp]> = [
    [{}, /upstreams\.b\.url: is missing/],
    [{ url: 'http://b', urls: ['http://c'] }, /upstreams\.b: .*both/],
    [{ urls: [] }, /urls/],
    [{ urls: ['http://b', 'ftp://c'] }, /urls/],
    [{ urls: ['http://b', 'https://c'] }, /urls\.1.*http:/],
    [{ urls: ['http://b/x', 'http://c/y'] }, /urls\.1.*"\/x"/],
    [{ urls: ['http://b', 'http://c', 'http://b'] }, /urls\.2.*twice/],
    [{ urls: ['http://b', 'http://c:99999'] }, /urls\.1.*expected a valid URL/]
  ]
  for (const [upstream, fault] of cases) t.match(faults(upstream), [fault])
  t.same(faults({ urls: ['http://b/x', 'http://c/x'] }), [])
})

t.test('what a WebSocket needs of its route is told', async t => {
  const about = (route: object) =>
    routeReports({ route: { websocket: {}, ...route } }).filter(each => each.includes('.websocket'))
  t.same(about({}), [], '`websocket: {}` is enough')
  t.match(about({ methods: ['POST'] }), [/needs GET/])
  const parts = { list: { upstream: 'b', rewrite: '/list' } }
  t.match(about({ parts }), [/cannot be combined with parts/])
  t.match(about({ upstream: undefined, parts }), [/unknown key "websocket" beside `parts`/])
})

const faultsOf = (over: Over) => routeReports(over).filter(isFault)

const tokens = {
  tokenHeaders: ['authorization', 'x-access-token', 'x-auth-token'],
  tokenCookies: ['Admin-Token'],
  tokenQuery: ['token']
}

t.test('names of the console’s token are no fault by themselves', async t => {
  t.same(faultsOf({ envelope: tokens }), [])
  const upstream = { credential: 'header:x-access-token' }
  t.same(faultsOf({ envelope: tokens, upstream }), [], 'the gateway may send there')
  t.same(faultsOf({ route: { passHeaders: ['authorization'] } }), [], 'and others may pass')
})

t.test('a key that passes such a name is a fault that says what to do', async t => {
  const faults: ReadonlyArray<[Over, RegExp]> = [
    [
      { route: { passHeaders: ['authorization'] } },
      /^routes\.r\.passHeaders\.0: "authorization" is in `envelope\.tokenHeaders` of gateway\.yaml, .* real token of another user\. Remove it here/
    ],
    [
      { route: { passHeaders: ['x-auth-token'] } },
      /^routes\.r\.passHeaders\.0: "x-auth-token" is in `envelope\.tokenHeaders`/
    ],
    [
      { upstream: { passHeaders: ['accept', 'x-access-token'] } },
      /^upstreams\.b\.passHeaders\.1: "x-access-token" is in `envelope\.tokenHeaders`/
    ],
    [
      { route: { passCookies: ['theme', 'Admin-Token'] } },
      /^routes\.r\.passCookies\.1: "Admin-Token" is in `envelope\.tokenCookies`/
    ],
    [
      { route: { query: { rename: { Token: 'ticket' } } } },
      /^routes\.r\.query\.rename\.Token: "Token" is in `envelope\.tokenQuery`/
    ],
    [
      { route: { query: { rename: { ticket: 'token' } } } },
      /^routes\.r\.query\.rename\.ticket: "token" is in `envelope\.tokenQuery`/
    ]
  ]
  for (const [over, message] of faults) {
    t.match(faultsOf({ envelope: tokens, ...over }), [message])
  }
})

t.test('a name in which no token travels is a fault', async t => {
  t.match(faultsOf({ envelope: { tokenHeaders: ['cookie'] } }), [
    /^envelope\.tokenHeaders\.0: "cookie" is set by the gateway itself/
  ])
  t.match(faultsOf({ envelope: { tokenHeaders: ['x-token', 'content-type'] } }), [
    /^envelope\.tokenHeaders\.1: "content-type" is set by the gateway itself/
  ])
  t.match(faultsOf({ envelope: { tokenCookies: ['console_sid'] } }), [
    /^envelope\.tokenCookies\.0: "console_sid" is a cookie of the gateway/
  ])
})

/** Faults of routes.yaml. */
const faultsIn = (routes: object) => reportsOf({ routes }).filter(isFault)

const login = (answer: unknown) => ({ endpoints: { login: { answer } } })

t.test('a name that is not in the list is a fault, with the nearest one', async t => {
  t.same(faultsIn(login({ json: { user: '{username}', a: ['{profile.b.c}'] } })), [])
  t.match(faultsIn(login({ json: { list: [{ user: '{user_name}' }] } })), [
    /^endpoints\.login\.answer\.json\.list\.0\.user: there is no name \{user_name\}\. Did you mean "username"\?/
  ])
  t.match(faultsIn(login({ json: 1, byRole: { admin: '{sessionId}' } })), [
    /^endpoints\.login\.answer\.byRole\.admin: there is no name \{sessionId\}/
  ])
  t.match(faultsIn(login({ json: ['{id.x}', '{profile.}', '{__proto__}'] })), [
    /json\.0: \{id\} has no members: only \{profile\.MEMBER\} names one/,
    /json\.1: a name is missing between the dots of \{profile\.\}/,
    /json\.2: there is no name \{__proto__\}/
  ])
})

t.test('a name in a member called __proto__ is checked too', async t => {
  t.match(faultsIn(login({ json: JSON.parse('{"__proto__": {"a": "{nobody}"}}') })), [
    /there is no name \{nobody\}/
  ])
})

t.test('`inEnvelope: flat` needs members', async t => {
  t.same(faultsIn(login({ json: '{profile}', inEnvelope: 'flat' })), [])
  t.match(faultsIn(login({ json: '{roles}', inEnvelope: 'flat' })), [/must be a mapping/])
  t.match(faultsIn(login({ json: {}, byRole: { admin: [] }, inEnvelope: 'flat' })), [
    /byRole\.admin: must be a mapping/
  ])
})

const route = (more: object) => ({ routes: { r: { path: '/api/r', ...more } } })

t.test('without a session only constants are allowed', async t => {
  const json = { id: '{id}' }
  t.same(faultsIn(route({ answer: { json, byRole: { admin: 1 } } })), [])
  t.match(faultsIn(route({ access: 'public', answer: { json } })), [
    /^routes\.r\.answer\.json\.id: \{id\} needs a session/
  ])
  t.match(faultsIn(route({ access: 'public', answer: { json: 1, byRole: { admin: 1 } } })), [
    /byRole: has no effect: no session/
  ])
  t.match(faultsIn({ endpoints: { logout: { answer: { json } } } }), [/needs a session/])
})

t.test('keys of another kind of route are unknown', async t => {
  const answer = { json: 1 }
  t.same(faultsIn(route({ answer, methods: ['POST'], touch: 'never' })), [])
  for (const [key, value] of Object.entries({
    shape: 's',
    timeout: '3s',
    cache: 'browser',
    passCookies: ['a'],
    query: { drop: ['a'] }
  })) {
    t.ok(
      faultsIn(route({ answer, [key]: value })).includes(
        `routes.r.${key}: unknown key "${key}" beside \`answer\`.`
      ),
      key
    )
  }
  t.ok(
    faultsIn({
      upstreams: { b },
      ...route({ answer, upstream: 'b' })
    }).includes('routes.r.answer: unknown key "answer" beside `upstream`.')
  )
  t.match(faultsIn(route({})), [/^routes\.r: expected a mapping with upstream, answer or parts/])
})

t.test('a constant answer has a status with a body', async t => {
  for (const status of [204, 205, 302, 304]) {
    const faults = faultsIn(route({ answer: { json: 1, status } }))
    t.match(faults, [/a status with a body/], String(status))
  }
})

t.test('an error as a constant answer has no success envelope', async t => {
  t.same(faultsIn(route({ answer: { json: {}, status: 410, inEnvelope: 'none' } })), [])
  t.match(faultsIn(route({ answer: { json: {}, status: 410 } })), [/inEnvelope: none/])
})
