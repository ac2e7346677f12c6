/** Sessions and their cookie: only what the gateway gave out, only where it belongs, and never again once it ended. */
import t from 'tap'
import { cookieOf, password, testGateway } from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { json } from '../support/upstream.ts'
import { isEnvelope, loginPath, openWire, serves } from '../support/wire.ts'
import { until } from '../support/until.ts'

const held: Array<() => void> = []
const wire = await openWire(
  t.after,
  {},
  {
    answer: (question, response, seen) => {
      const answer = () => {
        json(200, { ok: 1 })(question, response, seen)
      }
      if (seen.url.startsWith('/store/slow')) held.push(answer)
      else answer()
    }
  }
)
const { gateway, backend, cookie } = wire

const logoutPath = '/api/account/logout'
const right = { username: 'alice', password }
const [, value = ''] = /=(.*)/.exec(cookie) ?? []
const secretId = decodeURIComponent(value).split('.')[0] ?? ''
const isIn = async (given: string) =>
  (await gateway.call('/api/account/profile', { cookie: given })).status === 200
/** Cookie fields as bytes: no client tidies them up. */
const withCookies = (...fields: string[]) =>
  raw(
    gateway.url,
    Buffer.from(
      request(
        'GET /api/notices',
        fields.map(field => `Cookie: ${field}`)
      ),
      'latin1'
    )
  )

t.test('each sign-in gives another cookie, of at least 128 random bits', async t => {
  const values = await Promise.all(Array.from({ length: 12 }, () => gateway.signIn()))
  // Behind the name of the user, whom all of them have.
  const ids = values.map(each =>
    (decodeURIComponent(each.split('=')[1] ?? '').split('.')[0] ?? '').slice(16)
  )
  t.equal(new Set(ids).size, 12)
  for (const id of ids) t.ok(Buffer.from(id, 'base64url').length >= 16, 'long enough')
  // Two random ids of 32 letters hardly ever share eight places.
  for (const [index, id] of ids.slice(1).entries()) {
    t.ok(
      id.split('').filter((char, at) => char === ids[index]?.[at]).length < 8,
      'no counter, no clock'
    )
  }
})

t.test(
  'a cookie chosen by the client, or of a session that ended, is not adopted at sign-in',
  async t => {
    const dead = await gateway.signIn()
    await gateway.call(logoutPath, { method: 'POST', cookie: dead })
    for (const planted of [
      'console_sid=chosen',
      `console_sid=${'A'.repeat(32)}`,
      `console_sid=${'A'.repeat(32)}.${'B'.repeat(43)}`,
      'console_sid=',
      `console_sid=${secretId}`,
      dead
    ]) {
      const answer = await gateway.call(loginPath, { json: right, cookie: planted })
      t.equal(answer.status, 200, planted)
      t.not(cookieOf(answer), planted)
      t.notOk(await isIn(planted), 'what was planted opens nothing')
      t.ok(await isIn(cookieOf(answer)))
    }
  }
)

t.test(
  'signing in again gives a new cookie and ends the old session, also for another user',
  async t => {
    const first = await gateway.signIn()
    const second = cookieOf(await gateway.call(loginPath, { json: right, cookie: first }))
    const third = cookieOf(
      await gateway.call(loginPath, { json: { username: 'bob', password }, cookie: second })
    )
    t.equal(new Set([first, second, third]).size, 3)
    t.same([await isIn(first), await isIn(second), await isIn(third)], [false, false, true])
    t.equal(
      (await gateway.call('/api/account/profile', { cookie: third })).json.data.username,
      'bob'
    )
  }
)

t.test('a failed sign-in neither ends nor changes the session of the browser', async t => {
  const mine = await gateway.signIn()
  const answer = await gateway.call(loginPath, {
    json: { username: 'alice', password: 'wrong' },
    cookie: mine
  })
  t.equal(answer.status, 401)
  t.notOk(answer.headers.getSetCookie().some(each => each.startsWith('console_sid=')))
  t.ok(await isIn(mine))
})

t.test(
  'after sign-out the cookie is worthless, and nothing reaches the back-end with it',
  async t => {
    for (const method of ['POST', 'GET']) {
      const mine = await gateway.signIn()
      const answer = await gateway.call(logoutPath, { method, cookie: mine })
      t.equal(answer.status, 200)
      t.match(
        answer.headers.getSetCookie().find(each => each.startsWith('console_sid=')),
        /^console_sid=; (?=.*Path=\/)(?=.*(?:Max-Age=0|Expires=Thu, 01 Jan 1970))/
      )
      const before = backend.begun()
      for (const path of [
        '/api/notices',
        '/api/things/1',
        '/api/account/profile',
        '/api/admin/x'
      ]) {
        t.match(await gateway.call(path, { cookie: mine }), {
          status: 401,
          json: { errorCode: 'session.revoked' }
        })
      }
      t.equal(backend.begun(), before, method)
    }
  }
)

t.test(
  'sign-out answers the same without, with a dead, and with a garbage session, however often',
  async t => {
    const dead = await gateway.signIn()
    await gateway.call(logoutPath, { method: 'POST', cookie: dead })
    const bodies = new Set<string>()
    for (const given of [
      undefined,
      dead,
      dead,
      'console_sid=garbage',
      'console_sid=',
      `console_sid=${'x'.repeat(5000)}`,
      'other=1',
      '\u0001=;;;==;'
    ]) {
      for (const method of ['POST', 'GET']) {
        const answer = await raw(
          gateway.url,
          request(`${method} ${logoutPath}`, [
            ...(given === undefined ? [] : [`Cookie: ${given.replace('\u0001', '')}`]),
            ...(method === 'POST' ? ['Content-Length: 0'] : [])
          ])
        )
        t.equal(answer.status, 200)
        bodies.add(answer.body)
      }
    }
    t.equal(bodies.size, 1)
  }
)

t.test('requests that run while the browser signs out do not revive its session', async t => {
  for (let round = 0; round < 5; round++) {
    const mine = await gateway.signIn()
    const arrived = backend.seen.length
    const running = Array.from({ length: 4 }, (_, index) =>
      gateway.call(`/api/things/slow-${index}`, { cookie: mine })
    )
    await until('four requests arrived', () => backend.seen.length >= arrived + 4)
    await gateway.call(logoutPath, { method: 'POST', cookie: mine })
    for (const answer of held.splice(0)) answer()
    for (const { status, headers } of await Promise.all(running)) {
      t.equal(status, 200)
      t.same(headers.getSetCookie(), [])
    }
    t.notOk(await isIn(mine))
  }
})

t.test(
  'twenty sign-outs and twenty requests at once all settle, and the session is over',
  async t => {
    const mine = await gateway.signIn()
    const calls = Array.from({ length: 40 }, (_, index) =>
      index % 2 === 0
        ? gateway.call('/api/notices', { cookie: mine })
        : gateway.call(logoutPath, { method: 'POST', cookie: mine })
    )
    const answers = await Promise.all(calls)
    t.same(
      answers.filter(({ status }) => status !== 200 && status !== 401),
      []
    )
    t.ok(answers.filter((_, index) => index % 2 === 1).every(({ status }) => status === 200))
    t.notOk(await isIn(mine))
  }
)

t.test('a cookie that was tampered with is no session, never a fault', async t => {
  const before = backend.begun()
  const flip = (at: number) =>
    `${value.slice(0, at)}${value[at] === 'A' ? 'B' : 'A'}${value.slice(at + 1)}`
  const tampered = [
    '',
    '.',
    '..',
    'null',
    'undefined',
    '0',
    '{}',
    'j:{}',
    's:',
    flip(0),
    flip(10),
    flip(31),
    flip(40),
    value.slice(1),
    value.slice(0, -8),
    `${value}x`,
    `${value}.`,
    `.${value}`,
    `${value}.${value}`,
    `${value}%00`,
    `%00${value}`,
    `%0a${value}`,
    `${value}%20`,
    '%',
    '%zz',
    '%E0%A4%A',
    '../../etc/passwd',
    '{cg}:s:x',
    '__proto__',
    'constructor',
    '*',
    '\xff\xfe',
    `${secretId}.`,
    secretId,
    `${secretId}.${'A'.repeat(43)}`,
    value.toUpperCase(),
    value.toLowerCase(),
    value.split('').toReversed().join(''),
    'A'.repeat(4000),
    '.'.repeat(4000),
    '%41'.repeat(1000),
    `"${value}x"`
  ]
  for (const each of tampered) {
    const answer = await withCookies(`console_sid=${each}`)
    t.equal(answer.status, 401, each.slice(0, 60))
    isEnvelope(t, answer.body)
  }
  t.equal(backend.begun(), before)
  t.ok(await isIn(cookie))
})

t.test('two session cookies with different values are refused, in any order and form', async t => {
  const other = await gateway.signIn('bob')
  const before = backend.begun()
  for (const fields of [
    [`${cookie}; console_sid=evil`],
    [`console_sid=evil; ${cookie}`],
    [cookie, other],
    [other, cookie],
    [`${cookie};${other}`],
    [`a=1; ${cookie}; b=2; ${other}; c=3`],
    [`console_sid=; ${cookie}`],
    [`${cookie}; \tconsole_sid = evil`],
    [`${cookie}; console_sid="evil"`],
    [`a=1, console_sid=evil; ${cookie}`]
  ]) {
    const answer = await withCookies(...fields)
    t.equal(answer.status, 400, fields.join(' | ').replaceAll(value, '…'))
    isEnvelope(t, answer.body)
  }
  t.equal(backend.begun(), before)
  t.equal((await withCookies(`${cookie}; ${cookie}`)).status, 200, 'the same one twice is one')
})

t.test('only the cookie’s very name counts', async t => {
  const before = backend.begun()
  for (const name of [
    'Console_sid',
    'CONSOLE_SID',
    'console-sid',
    'console_sid2',
    'xconsole_sid',
    '__Host-console_sid',
    '__Secure-console_sid',
    'console_sid[]',
    'console_sid[0]',
    'console%5fsid',
    'console_sid%20',
    '\xa0console_sid',
    'console_sid\xa0',
    '\x0bconsole_sid',
    '\x0cconsole_sid',
    '\x85console_sid',
    '\xc2\xa0console_sid',
    '\xef\xbb\xbfconsole_sid',
    '$console_sid',
    '"console_sid"',
    'x=console_sid',
    'x, console_sid',
    'console_sid\xad'
  ]) {
    const answer = await withCookies(`${name}=${value}`)
    t.ok(
      answer.status === 401 || answer.status === 400,
      `${JSON.stringify(name)}: ${answer.status}`
    )
  }
  t.equal(backend.begun(), before)
})

t.test('a look-alike that was planted beside the real cookie changes nothing', async t => {
  const planted = (await gateway.signIn('bob')).split('=')[1] ?? ''
  for (const name of [
    '\xa0console_sid',
    'console_sid\xa0',
    '\x85console_sid',
    'Console_sid',
    '__Host-console_sid',
    'console_sid[]'
  ]) {
    for (const fields of [
      [`${name}=${planted}; ${cookie}`],
      [`${cookie}; ${name}=${planted}`],
      [`${name}=${planted}`, cookie]
    ]) {
      const answer = await raw(
        gateway.url,
        Buffer.from(
          request(
            'GET /api/account/profile',
            fields.map(field => `Cookie: ${field}`)
          ),
          'latin1'
        )
      )
      t.ok(
        answer.status === 400 || (answer.status === 200 && answer.body.includes('"alice"')),
        `${JSON.stringify(name)}: ${answer.status} ${/"username":"\w+"/.exec(answer.body)?.[0] ?? ''}`
      )
    }
  }
})

t.test(
  'over https a cookie without the __Host- prefix, or with a blank before it, is none',
  async t => {
    const secure = await testGateway(t.after, {
      gateway: { session: { cookie: { secure: true } } }
    })
    const mine = await secure.signIn()
    const given = mine.split('=')[1] ?? ''
    t.match(mine, /^__Host-/)
    for (const name of [
      'console_sid',
      '__host-console_sid',
      '__Secure-console_sid',
      '\xa0__Host-console_sid',
      '\x85__Host-console_sid',
      '__Host-console_sid\xa0'
    ]) {
      const answer = await raw(
        secure.url,
        Buffer.from(request('GET /api/account/profile', [`Cookie: ${name}=${given}`]), 'latin1')
      )
      t.equal(answer.status, 401, JSON.stringify(name))
    }
    t.equal((await secure.call('/api/account/profile', { cookie: mine })).status, 200)
  }
)

t.test('the session’s id opens nothing but as its cookie', async t => {
  const before = backend.begun()
  for (const id of [value, secretId, decodeURIComponent(value)]) {
    const fields = [
      'Authorization: Bearer ',
      'Authorization: Session ',
      'X-Session-Id: ',
      'X-Auth-Token: ',
      'X-Console-Sid: ',
      'Console_sid: ',
      'Session: ',
      'Set-Cookie: console_sid=',
      'Cookie2: console_sid=',
      'X-Cookie: console_sid='
    ].map(field => field + id)
    for (const field of fields) {
      t.equal(
        (await raw(gateway.url, request('GET /api/notices', [field]))).status,
        401,
        field.slice(0, 20)
      )
    }
    for (const target of [
      `/api/notices?console_sid=${id}`,
      `/api/notices?session=${id}`,
      `/api/notices?token=${id}`,
      `/api/things/x?cookie=console_sid=${id}`
    ]) {
      t.equal((await raw(gateway.url, request(`GET ${target}`))).status, 401)
    }
    // Some signatures hold what no path may hold.
    t.match(String((await raw(gateway.url, request(`GET /api/things/${id}`))).status), /^40[01]$/)
    t.equal(
      (await gateway.call('/api/things/1', { json: { console_sid: id, session: id } })).status,
      401
    )
  }
  t.equal(backend.begun(), before)
})

t.test('hundreds of cookies and huge ones are refused or ignored, never a fault', async t => {
  t.equal(
    (
      await withCookies(
        `${Array.from({ length: 400 }, (_, index) => `c${index}=${index}`).join('; ')}; ${cookie}`
      )
    ).status,
    200
  )
  t.equal((await withCookies(`${';'.repeat(10_000)}${cookie}`)).status, 200)
  t.equal(
    (await withCookies(...Array.from({ length: 150 }, (_, index) => `c${index}=1`))).status,
    431
  )
  t.equal((await withCookies(`big=${'x'.repeat(60_000)}; ${cookie}`)).status, 431)
  t.equal((await withCookies(`console_sid=${'x'.repeat(15_000)}`)).status, 401)
  await serves(t, wire)
})

t.test('who is not signed in gets no session', async t => {
  for (const answer of await Promise.all([
    gateway.call('/api/notices'),
    gateway.call('/api/account/profile'),
    gateway.call('/api/nothing'),
    gateway.call('/api/open/x'),
    gateway.call(loginPath),
    gateway.call(loginPath, { json: { username: 'alice', password: 'wrong' } }),
    gateway.call(loginPath, { json: {} }),
    gateway.call('/api/notices', { cookie: 'console_sid=garbage' })
  ])) {
    t.notOk(
      answer.headers.getSetCookie().some(each => /^console_sid=[^;]/.test(each)),
      answer.text.slice(0, 60)
    )
  }
})

t.test('no answer holds the session’s id but the cookie that gives it', async t => {
  const answer = await gateway.call(loginPath, { json: right })
  const given = decodeURIComponent(cookieOf(answer).split('=')[1] ?? '').split('.')[0] ?? ''
  t.equal(answer.headers.get('cache-control'), 'no-store')
  t.notMatch(answer.text, given)
  t.equal(
    [...answer.headers].filter(([name, text]) => name !== 'set-cookie' && text.includes(given))
      .length,
    0
  )
  const profile = await gateway.call('/api/account/profile', { cookie: cookieOf(answer) })
  t.notMatch(profile.text, given)
  t.same(profile.headers.getSetCookie(), [], 'a session in use is not given out again')
})

t.end()
