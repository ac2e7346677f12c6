/** Sessions and their cookie: only what the gateway gave, where it belongs, until it ends. */
import t from 'tap'
import { type Called, cookieOf, password, testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { until } from '../support/until.ts'
import { json, type testUpstream } from '../support/upstream.ts'
import { isEnvelope, loginPath, openWire, serves } from '../support/wire.ts'

const held: Array<() => void> = []
const answer: Parameters<typeof testUpstream>[1] = (question, response, seen) => {
  const pass = () => json(200, { ok: 1 })(question, response, seen)
  if (seen.url.startsWith('/store/slow')) held.push(pass)
  else pass()
}
const wire = await openWire(t.teardown, {}, answer)
const { gateway, backend, cookie } = wire

const right = { username: 'alice', password }
const wrong = { username: 'alice', password: 'wrong' }
const valueOf = (given: string) => given.slice(given.indexOf('=') + 1)
const idOf = (given: string) => decodeURIComponent(valueOf(given)).split('.')[0] ?? ''
const value = valueOf(cookie)
const secretId = idOf(cookie)
const signIn = (typed: object, given: string) =>
  gateway.call(loginPath, { json: typed, cookie: given })
const signOut = (given: string, method = 'POST') =>
  gateway.call('/api/account/logout', { method, cookie: given })
const profileOf = (given: string) => gateway.call('/api/account/profile', { cookie: given })
const isIn = async (given: string) => (await profileOf(given)).status === 200
const sessionCookies = ({ headers }: Called) =>
  headers.getSetCookie().filter(each => each.startsWith('console_sid='))
/** Cookie fields as bytes: no client tidies them up. */
const withCookies = (fields: readonly string[], path = '/api/notices', url = gateway.url) => {
  const lines = fields.map(field => `Cookie: ${field}`)
  return raw(url, Buffer.from(request(`GET ${path}`, lines), 'latin1'))
}

t.test('each sign-in gives another cookie, of at least 128 random bits', async t => {
  const cookies = await Promise.all(Array.from({ length: 12 }, () => gateway.signIn()))
  // Behind the name of the user, whom all of them have.
  const ids = cookies.map(each => idOf(each).slice(16))
  t.equal(new Set(ids).size, 12)
  for (const [index, id] of ids.entries()) {
    t.ok(Buffer.from(id, 'base64url').length >= 16, 'long enough')
    // Two random ids of 32 letters hardly ever share eight places.
    const shared = id.split('').filter((char, at) => char === ids[index - 1]?.[at])
    t.ok(shared.length < 8, 'no counter, no clock')
  }
})

t.test('no session of before is adopted at sign-in, nor ended by one that fails', async t => {
  const [dead, bobs] = [await gateway.signIn(), await gateway.signIn('bob')]
  t.equal((await signOut(dead)).status, 200)
  t.same(sessionCookies(await signIn(wrong, bobs)), [])
  t.ok(await isIn(bobs))
  const chosen = ['chosen', `${'A'.repeat(32)}.${'B'.repeat(43)}`, '', secretId]
  for (const planted of [...chosen.map(each => `console_sid=${each}`), dead, bobs]) {
    const mine = cookieOf(await signIn(right, planted))
    t.not(mine, planted)
    t.notOk(await isIn(planted), planted)
    t.equal((await profileOf(mine)).json.data.username, 'alice')
  }
})

for (const method of ['POST', 'GET']) {
  t.test(`after sign-out by ${method} the cookie is worthless`, async t => {
    const mine = await gateway.signIn()
    await signOut(mine, method)
    const before = backend.begun()
    const revoked = { status: 401, json: { errorCode: 'session.revoked' } }
    for (const path of ['/api/notices', '/api/account/profile', '/api/admin/x']) {
      t.match(await gateway.call(path, { cookie: mine }), revoked, path)
    }
    t.equal(backend.begun(), before)
    const expected = await signOut(cookie.replace('=', '_other='), method)
    for (const given of [mine, 'console_sid=garbage', 'console_sid=', '=;;;==;']) {
      const { status, text } = await signOut(given, method)
      t.same([status, text], [200, expected.text], 'the same whatever session there is')
    }
  })
}

t.test('requests that run while the browser signs out do not revive its session', async t => {
  const mine = await gateway.signIn()
  const running = [1, 2, 3, 4].map(n => gateway.call(`/api/things/slow-${n}`, { cookie: mine }))
  await until('four requests arrived', () => held.length === 4)
  const others = Array.from({ length: 20 }, () => gateway.call('/api/notices', { cookie: mine }))
  const ends = await Promise.all(Array.from({ length: 20 }, () => signOut(mine)))
  t.same([...new Set(ends.map(({ status }) => status))], [200], 'sign-outs at once all settle')
  for (const { status } of await Promise.all(others)) t.ok([200, 401].includes(status))
  for (const answer of held.splice(0)) answer()
  for (const { status, headers } of await Promise.all(running)) {
    t.equal(status, 200)
    t.same(headers.getSetCookie(), [])
  }
  t.notOk(await isIn(mine))
})

t.test('a cookie that was tampered with is no session, never a fault', async t => {
  const before = backend.begun()
  const flip = (at: number) =>
    `${value.slice(0, at)}${value[at] === 'A' ? 'B' : 'A'}${value.slice(at + 1)}`
  const changed = [flip(0), flip(10), flip(31), flip(40), value.slice(1), value.slice(0, -8)]
  const all = [
    ...['', '.', '*', '{}', 'j:{}', 's:', '%', '%zz', '%E0%A4%A', '\xff\xfe', '{cg}:s:x'],
    ...['__proto__', '../../etc/passwd', ...changed, value.toUpperCase(), value.toLowerCase()],
    ...['x', '.', `.${value}`, '%00'].map(more => value + more),
    ...['.', '%00', '%0a'].map(more => more + value),
    ...[secretId, `${secretId}.`, `${secretId}.${'A'.repeat(43)}`, `"${value}x"`],
    ...['A'.repeat(4000), '%41'.repeat(1000)]
  ]
  for (const each of all) {
    const answer = await withCookies([`console_sid=${each}`])
    t.equal(answer.status, 401, each.slice(0, 60))
    isEnvelope(t, answer.body)
    t.notMatch(answer.head, /^set-cookie: console_sid=[^;]/im, 'and it gets none')
  }
  t.equal(backend.begun(), before)
  t.ok(await isIn(cookie))
})

t.test('two session cookies with different values are refused, in any order and form', async t => {
  const other = await gateway.signIn('bob')
  const before = backend.begun()
  const evil = 'console_sid=evil'
  for (const fields of [
    ...[[`${cookie}; ${evil}`], [`${evil}; ${cookie}`], [`${cookie};${other}`], [cookie, other]],
    ...[[`console_sid=; ${cookie}`], [`${cookie}; \tconsole_sid = evil`]],
    ...[[`${cookie}; console_sid="evil"`], [`a=1, ${evil}; ${cookie}`]]
  ]) {
    const answer = await withCookies(fields)
    t.equal(answer.status, 400, fields.join(' | ').replaceAll(value, '…'))
    isEnvelope(t, answer.body)
  }
  t.equal(backend.begun(), before)
  t.equal((await withCookies([`${cookie}; ${cookie}`])).status, 200, 'the same one twice is one')
})

t.test('only the cookie’s very name counts, also beside the real one', async t => {
  const planted = valueOf(await gateway.signIn('bob'))
  const before = backend.begun()
  for (const name of [
    ...['Console_sid', 'console_sid2', 'xconsole_sid', 'console_sid[]', '__Host-console_sid'],
    ...['console%5fsid', 'console_sid%20', '\xa0console_sid', 'console_sid\xa0', '\x0bconsole_sid'],
    ...['\x85console_sid', '\xef\xbb\xbfconsole_sid', 'console_sid\xad', '"console_sid"'],
    ...['$console_sid', 'x, console_sid']
  ]) {
    const title = JSON.stringify(name)
    const { status } = await withCookies([`${name}=${value}`])
    t.ok(status === 401 || status === 400, `${title}: ${status}`)
    const fake = `${name}=${planted}`
    for (const fields of [[`${fake}; ${cookie}`], [`${cookie}; ${fake}`], [fake, cookie]]) {
      const { status, body } = await withCookies(fields, '/api/account/profile')
      t.ok(status === 400 || (status === 200 && body.includes('"alice"')), `${title} beside it`)
    }
  }
  t.equal(backend.begun(), before)
})

t.test('over https a cookie without the very prefix __Host- is none', async t => {
  const secure = await testGateway(t.after, { gateway: { session: { cookie: { secure: true } } } })
  const mine = await secure.signIn()
  t.match(mine, /^__Host-/)
  const names = ['console_sid', '__host-console_sid', '\xa0__Host-console_sid']
  for (const name of names) {
    const given = `${name}=${valueOf(mine)}`
    const { status } = await withCookies([given], '/api/account/profile', secure.url)
    t.equal(status, 401, JSON.stringify(name))
  }
  t.equal(await secure.status('/api/account/profile', { cookie: mine }), 200)
})

t.test('the session’s id opens nothing but as its cookie', async t => {
  const before = backend.begun()
  for (const id of [value, secretId]) {
    for (const field of ['Authorization: Bearer ', 'X-Auth-Token: ', 'Cookie2: console_sid=']) {
      const { status } = await raw(gateway.url, request('GET /api/notices', [field + id]))
      t.equal(status, 401, field)
    }
    for (const query of ['console_sid=', 'token=']) {
      const { status } = await raw(gateway.url, request(`GET /api/notices?${query}${id}`))
      t.equal(status, 401, query)
    }
    // Some signatures hold what no path may hold.
    t.match(String((await raw(gateway.url, request(`GET /api/things/${id}`))).status), /^40[01]$/)
    const inBody = { json: { console_sid: id, session: id } }
    t.equal(await gateway.status('/api/things/1', inBody), 401)
  }
  t.equal(backend.begun(), before)
})

t.test('hundreds of cookies and huge ones are refused or ignored, never a fault', async t => {
  const many = Array.from({ length: 400 }, (_, index) => `c${index}=${index}`)
  const cases: ReadonlyArray<readonly [fields: string[], status: number]> = [
    [[`${many.join('; ')}; ${cookie}`], 200],
    [[`${';'.repeat(10_000)}${cookie}`], 200],
    [many.slice(0, 150), 431],
    [[`big=${'x'.repeat(60_000)}; ${cookie}`], 431],
    [[`console_sid=${'x'.repeat(15_000)}`], 401]
  ]
  for (const [fields, status] of cases) t.equal((await withCookies(fields)).status, status)
  await serves(t, wire)
})

t.test('no answer holds the session’s id but the cookie that gives it', async t => {
  const answer = await gateway.call(loginPath, { json: right })
  const mine = cookieOf(answer)
  const given = idOf(mine)
  t.equal(answer.headers.get('cache-control'), 'no-store')
  const others = [...answer.headers].filter(([name]) => name !== 'set-cookie')
  t.notMatch(answer.text + JSON.stringify(others), given)
  const profile = await profileOf(mine)
  t.notMatch(profile.text, given)
  t.same(profile.headers.getSetCookie(), [], 'a session in use is not given out again')
})
