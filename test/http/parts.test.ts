/** One answer made of several: the route's own, where it has one, and its parts. */
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { parse } from 'yaml'
import { testGateway } from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { until } from '../support/until.ts'

type Answer = NonNullable<Parameters<typeof testUpstream>[1]>

const says =
  (status: number, headers = {}, body: string | Buffer = ''): Answer =>
  (_request, response) =>
    void response.writeHead(status, headers).end(body)
const packed = (bytes: string | Buffer) =>
  says(200, { 'content-encoding': 'gzip' }, gzipSync(bytes))
const silent: Answer = () => {}
const broken: Answer = request => void request.socket.destroy()
const drips: Answer = (_request, response) => {
  response.writeHead(200, { 'content-length': 100_000 })
  const timer = setInterval(() => response.write(' '), 20)
  response.on('close', () => clearInterval(timer))
}

/** How a part fails, and the code and status of the request where the part is required. */
const failures: Record<string, readonly [answer: Answer, code: string, status: number]> = {
  'error': [json(404, { message: 'No such customer' }), 'upstream.error', 404],
  'own-word-for-no': [json(200, { code: 403, msg: 'Not yours' }), 'upstream.error', 403],
  'redirect': [says(302, { location: '/x' }), 'upstream.redirect', 502],
  'no-json': [says(200, {}, '<html>do-not-log</html>'), 'shape.not-json', 502],
  'too-much': [says(200, {}, `["${'x'.repeat(200_000)}"]`), 'shape.too-large', 502],
  'broken': [broken, 'upstream.reset', 502],
  'late': [silent, 'upstream.timeout', 504],
  'drips': [drips, 'upstream.timeout.total', 504]
}

interface Case {
  /** What the route's own back-end and that of the parts say. */
  readonly own?: Answer
  readonly part?: Answer
  readonly parts?: Readonly<Record<string, object>>
  readonly into?: string
  readonly json: object
  /** In the log, where the request fails. */
  readonly reason?: RegExp
}

const counted = { upstream: 'c', shape: 'count', into: 'n' }
const taken = { ...counted, into: 'id.count' }
const list = json(200, [1, 2])
const invalid = { errorCode: 'upstream.invalid' }
const empty = {
  parts: { a: { ...counted, default: 0 }, b: { ...counted, into: 'plain' } },
  json: { id: 1, n: 0, plain: null }
}

const cases: Record<string, Case> = {
  'a compressed part is unpacked': { part: packed('{"count":7}'), json: { id: 1, n: 7 } },
  'a list has its own place': {
    into: 'rows.all',
    own: list,
    json: { rows: { all: [1, 2] }, n: 7 }
  },
  'a list without one is no answer that parts could be added to': {
    own: list,
    json: invalid,
    reason: /not an object to which parts can be added/
  },
  'an answer without a body gets them': { own: says(204), json: { n: 7 } },
  'a part without a place is missing': {
    parts: { taken: { ...taken, required: false } },
    json: { id: 1, missing: ['taken'] }
  },
  'a required part without a place is an error': {
    parts: { taken },
    json: invalid,
    reason: /the part "taken" has no place/
  },
  'null has its default, and is not missing': { ...empty, part: json(200, { count: null }) },
  'so has no body': { ...empty, part: says(204) }
}

const answers = new Map<string, Answer>()
const said: Answer = (request, response, seen) => {
  const path = seen.url.split('?', 1)[0] ?? ''
  const answer = answers.get(path) ?? json(200, path.startsWith('/base') ? { count: 7 } : { id: 1 })
  answer(request, response, seen)
}
const [own, other] = [await testUpstream(t.teardown, said), await testUpstream(t.teardown, said)]

const routes: Record<string, object> = {}
const open = (name: string, route: object) => {
  routes[name] = { path: `/api/${name}`, rewrite: `/${name}`, access: 'public', ...route }
}
for (const [name, [answer, code]] of Object.entries(failures)) {
  // Short only where waiting is the point.
  const upstream = code.startsWith('upstream.timeout') ? 'quick' : 'c'
  const part = { upstream, rewrite: `/${name}`, shape: 'opened', into: 'unread' }
  answers.set(`/base/${name}`, answer)
  const unread = { ...part, required: false }
  const parts = { unread, other: { ...unread, into: 'other', default: 0 } }
  open(name, { upstream: 'b', shape: 'envelope', parts })
  open(`all-of-${name}`, { upstream: 'b', timeout: '30s', parts: { 'the-part': part } })
}
for (const [index, each] of Object.values(cases).entries()) {
  const { parts = { a: counted }, into, own: first, part } = each
  const placed = Object.entries(parts).map(([name, of]) => {
    return [name, { ...of, rewrite: `/case-${index}` }]
  })
  open(`case-${index}`, { upstream: 'b', into, parts: Object.fromEntries(placed) })
  if (first !== undefined) answers.set(`/case-${index}`, first)
  if (part !== undefined) answers.set(`/base/case-${index}`, part)
}
const partAt = (rewrite: string, more: object = {}) => ({ upstream: 'c', rewrite, ...more })
open('all', {
  upstream: 'b',
  shape: 'all',
  parts: {
    unread: partAt('/unread', { shape: 'count', into: 'data.user.unreadCount' }),
    team: partAt('/team', { shape: 'team', into: 'data.team' }),
    flags: partAt('/flags', { into: 'data.flags.all' })
  }
})
open('all-of-held', { upstream: 'b', parts: { a: partAt('/fails') } })
open('closed', { upstream: 'b', parts: { a: partAt('/held') } })
open('left', {
  upstream: 'b',
  parts: { a: partAt('/held', { required: false }), b: partAt('/held', { into: 'm' }) }
})
const unread = { ...counted, rewrite: '/unread', into: 'unreadCount', required: false, default: 0 }
const written = parse(`
shapes:
  count: [{ unwrap: count }]
  opened: [{ open: code-data }]
  envelope: [{ wrap: envelope }]
  all: [{ open: code-data }, { rename: { id: key } }, { wrap: envelope }]
  team: [{ unwrap: result }, { pick: [team] }]
  me: [{ unwrap: result }, { rename: { uid: id, loginName: username } }]
aliases: { /api/overview: /api/dashboard, /api/currentUser: /api/account/profile }
routes:
  told:
    path: /api/told/*
    rewrite: /told/*
    upstream: b
    passHeaders: [authorization]
    passCookies: [theme]
    parts:
      one: { upstream: c, rewrite: /one/*, into: one }
      two: { upstream: anonymous, rewrite: /two, into: two }
      three: { upstream: b, rewrite: /three, into: three }
  dashboard:
    path: /api/dashboard
    shape: envelope
    parts:
      a: { upstream: c, rewrite: /a, into: a }
      b: { upstream: c, rewrite: /b, shape: count, into: b.n }
      c: { upstream: c, rewrite: /c }
      d: { upstream: c, rewrite: /fault, required: false }
`) as { routes: object }
const files = {
  limits: { limits: {}, sizes: { shape: '100KiB' } },
  routes: {
    ...written,
    upstreams: {
      b: { url: own.url },
      c: { url: `${other.url}/base` },
      quick: { url: `${other.url}/base`, responseTimeout: '200ms' },
      anonymous: { url: `${other.url}/base`, identity: false }
    },
    endpoints: { profile: { parts: { notices: unread } } as object },
    routes: { ...routes, ...written.routes }
  }
}
answers.set('/base/fault', json(500, {}))
const gateway = await testGateway(t.teardown, files)
const { metrics } = gateway
const urlsOf = ({ seen }: typeof own, start: string) => seen.filter(({ url }) => url === start)

t.test('all are asked at the same time, and one shaped answer is made of them', async t => {
  const values = {
    '/all': { code: 0, data: { id: 7, user: { name: 'Al' } } },
    '/base/unread': { count: 3 },
    '/base/team': { result: { team: 'Ops', floor: 2 } },
    '/base/flags': { a: 1 }
  }
  // Each answers only once every one of them was asked.
  const waiting: Array<() => void> = []
  for (const [path, value] of Object.entries(values)) {
    answers.set(path, (...exchange) => {
      waiting.push(() => json(200, value)(...exchange))
      if (waiting.length === 4) for (const answer of waiting) answer()
    })
  }
  const { status, json: body } = await gateway.call('/api/all')
  for (const path of Object.keys(values)) answers.delete(path)
  t.equal(status, 200)
  t.same(body.data, {
    key: 7,
    user: { name: 'Al', unreadCount: 3 },
    team: { team: 'Ops' },
    flags: { all: { a: 1 } }
  })
  t.notOk('missing' in body)
})

t.test('parts are told who asks and what their upstream may see, and no body fields', async t => {
  const cookie = `${await gateway.signIn('bob')}; theme=dark`
  const answer = await gateway.call('/api/told/a%20b?x=1&y=2', {
    cookie,
    headers: {
      'authorization': 'Bearer x',
      'x-tenant-id': 'acme',
      'range': 'bytes=0-1',
      'if-none-match': '"1"',
      'accept-encoding': 'br'
    }
  })
  t.same(answer.json, { id: 1, one: { count: 7 }, two: { count: 7 }, three: { id: 1 } })
  t.equal(answer.headers.get('cache-control'), 'no-store')
  const [one] = urlsOf(other, '/base/one/a%20b')
  t.match(one, {
    method: 'GET',
    headers: {
      'x-user-name': 'bob',
      'x-user-id': '2',
      'x-tenant-id': 'acme',
      'x-request-id': answer.headers.get('x-request-id'),
      'accept-encoding': 'identity'
    }
  })
  for (const name of ['authorization', 'cookie', 'range', 'if-none-match']) {
    t.notOk(one?.headers[name], name)
  }
  const [two] = urlsOf(other, '/base/two')
  t.ok(two)
  t.notOk(two?.headers['x-user-name'])
  const [three] = urlsOf(own, '/three')
  const ofRoute = { authorization: 'Bearer x', cookie: 'theme=dark' }
  t.match(three?.headers, ofRoute, 'the upstream of the route itself')
})

for (const [name, [, code, status]] of Object.entries(failures)) {
  t.test(`${name}: an optional part is left out, and named in answer, log and metrics`, async t => {
    const missing = ['unread', 'other']
    const answer = await gateway.call(`/api/${name}`)
    t.same([answer.status, answer.json.missing], [200, missing])
    t.same(answer.json.data, { id: 1, other: 0 })
    const line = await gateway.logged(({ msg, route }) => msg === 'request' && route === name)
    t.match(line, { missing, reason: /^part (?:unread|other): / })
    t.match(line['reason'], code)
    t.match(await metrics(), `console_gateway_parts_missing_total{route="${name}",part="unread"} 1`)
    t.notMatch(JSON.stringify(gateway.log), 'do-not-log')
  })

  t.test(`${name}: a required part gives its error; the log alone says which`, async t => {
    const route = `all-of-${name}`
    const failed = await gateway.call(`/api/${route}`)
    t.match(failed, { status, json: { success: false, errorCode: code } })
    t.notMatch(failed.text, /the-part|do-not-log|127\.0\.0\.1/)
    const line = gateway.log.find(each => each['route'] === route && each['code'] === code)
    t.match(line, { reason: /the part "the-part"/ })
  })
}

t.test('where a required part fails, nobody waits for the route’s own upstream', async t => {
  let isAborted = false
  answers.set('/all-of-held', (_request, response) => {
    response.on('close', () => (isAborted = true))
  })
  const isAsked = () => urlsOf(own, '/all-of-held').length === 1
  answers.set('/base/fails', (...exchange) => {
    void until('the route is asked', isAsked).then(() => json(404, {})(...exchange))
  })
  t.match(await gateway.call('/api/all-of-held'), { status: 404 })
  await until('its own upstream sees the end', () => isAborted)
  t.ok(isAsked(), 'and it was not asked again')
})

t.test('where the route’s own upstream fails, its error is the answer, and parts end', async t => {
  let isAborted = false
  answers.set('/base/held', (_request, response) => response.on('close', () => (isAborted = true)))
  answers.set('/closed', (...exchange) => {
    void until('the part is asked', () => urlsOf(other, '/base/held').length > 0).then(() =>
      json(409, { message: 'Closed.' })(...exchange)
    )
  })
  t.match(await gateway.call('/api/closed'), {
    status: 409,
    json: { errorCode: 'upstream.error', message: 'Closed.' }
  })
  await until('the part ends', () => isAborted)
  const line = await gateway.logged(({ msg, route }) => msg === 'request' && route === 'closed')
  t.notOk(line['missing'], 'no part is called missing')
})

t.test('a client that leaves ends all of them, and nothing is called missing', async t => {
  const errors = (await metrics()).match(/console_gateway_errors_total.*/g)
  let held = 0
  const hold: Answer = (_request, response) => {
    held++
    response.on('close', () => held--)
  }
  for (const path of ['/left', '/base/held']) answers.set(path, hold)
  const leaving = new AbortController()
  const call = fetch(`${gateway.url}/api/left`, { signal: leaving.signal })
  await until('all were asked', () => held === 3)
  leaving.abort()
  await t.rejects(call)
  await until('all ended', () => held === 0)
  const line = await gateway.logged(({ status }) => status === 499)
  t.match(line, { route: 'left' })
  t.notOk(line['missing'])
  t.same((await metrics()).match(/console_gateway_errors_total.*/g), errors)
})

for (const [index, [title, { json: expected, reason }]] of Object.entries(cases).entries()) {
  t.test(title, async t => {
    const answer = await gateway.call(`/api/case-${index}`)
    if (reason === undefined) return t.same([answer.status, answer.json], [200, expected])
    t.match(answer, { status: 502, json: expected })
    const isOf = (line: Record<string, unknown>) => line['route'] === `case-${index}`
    return t.match(await gateway.logged(line => isOf(line) && 'code' in line), { reason })
  })
}

t.test('a route may be made of parts alone', async t => {
  const dashboard = '/api/dashboard'
  t.match(await gateway.call(dashboard), { status: 401, json: { errorCode: 'session.none' } })
  t.same(urlsOf(other, '/base/a'), [])
  const cookie = await gateway.signIn()
  for (const path of [dashboard, '/api/overview']) {
    const answer = await gateway.call(path, { cookie })
    t.same(
      [answer.status, answer.json.data, answer.json.missing, answer.headers.get('content-type')],
      [200, { a: { count: 7 }, b: { n: 7 }, count: 7 }, ['d'], 'application/json; charset=utf-8']
    )
  }
  t.equal((await gateway.call(dashboard, { method: 'HEAD', cookie })).status, 200)
  t.match(await gateway.call(dashboard, { cookie, json: {} }), {
    status: 405,
    json: { errorCode: 'route.method' }
  })
  const isAlias = (line: Record<string, unknown>) => line['path'] === '/api/overview'
  t.match(await gateway.logged(isAlias), { msg: 'request', route: 'dashboard' })
})

t.test('the profile has parts too, from a session or from an upstream', async t => {
  const ask = async (asked: typeof gateway) => {
    const nobody = await asked.call('/api/account/profile')
    t.match(nobody, { status: 401, json: { errorCode: 'session.none', data: { isLogin: false } } })
    const answer = await asked.call('/api/currentUser', { cookie: await asked.signIn() })
    t.equal(answer.headers.get('cache-control'), 'no-store')
    return answer.json
  }
  const data = { username: 'alice', email: 'alice@example.com', unreadCount: 7 }
  t.match(await ask(gateway), { success: true, data })
  answers.set('/me', json(200, { result: { uid: 42, loginName: 'al' } }))
  const notices = { ...unread, into: 'result.unreadCount' }
  const profile = { upstream: 'b', rewrite: '/me', shape: 'me', parts: { notices } }
  const ofUpstream = { ...files, routes: { ...files.routes, endpoints: { profile } } }
  t.match(await ask(await testGateway(t.after, ofUpstream)), {
    data: { id: 42, username: 'al', unreadCount: 7 }
  })
  answers.set('/base/unread', json(500, {}))
  t.match(await ask(gateway), { data: { ...data, unreadCount: 0 }, missing: ['notices'] })
})
