/** Sign-in abuse: guessing is counted by address and by account before the password is looked at, and tells nothing of who exists. */
import t from 'tap'
import { watchArgon2 } from '../support/argon2.ts'
import {
  type Called,
  noLockout,
  password,
  type TestGateway,
  testGateway
} from '../support/gateway.ts'
import { raw, request } from '../support/raw.ts'
import { testUsers } from '../support/users.ts'
import { isEnvelope, loginPath } from './support.ts'
import { until } from '../support/until.ts'

const every = '10m'
const byAddress = (failures: number) => ({ address: { failures, every } })
const byAccount = (failures: number) => ({ account: { failures, every } })

interface GuardOptions {
  readonly lockout: object
  readonly trusted?: string[]
  readonly users?: Record<string, unknown>
  readonly inFlightPerUser?: number
}

const guarded = (
  cleanUp: (undo: () => unknown) => void,
  { lockout, trusted = [], users = { users: testUsers }, inFlightPerUser = 200 }: GuardOptions
) =>
  testGateway(cleanUp, {
    users,
    gateway: { server: { trustedProxies: trusted } },
    limits: { inFlightPerUser, lockout: { ...noLockout, ...lockout } }
  })

const attempt = (
  gateway: TestGateway,
  username: string,
  headers: Record<string, string> = {},
  typed = 'wrong'
) => gateway.call(loginPath, { json: { username, password: typed }, headers })
const statuses = (answers: Called[]) => answers.map(({ status }) => status)

t.test('one address that guesses at one account is told to wait', async t => {
  const gateway = await guarded(t.after, { lockout: { ...byAddress(100), ...byAccount(5) } })
  const answers: Called[] = []
  for (let guess = 0; guess < 8; guess++) answers.push(await attempt(gateway, 'alice'))
  t.same(statuses(answers), [401, 401, 401, 401, 401, 429, 429, 429])
  const last = answers.at(-1)
  t.match(last?.json, { errorCode: 'login.locked' })
  isEnvelope(t, last?.text ?? '')
  const wait = Number(last?.headers.get('retry-after'))
  t.ok(wait >= 1 && wait <= 600, `Retry-After: ${wait}`)
  t.equal(
    (await attempt(gateway, 'alice', {}, password)).status,
    429,
    'the right password is not looked at either'
  )
  t.equal((await attempt(gateway, 'bob', {}, password)).status, 200, 'nobody else is locked out')
})

t.test('one account is guarded against many addresses', async t => {
  const gateway = await guarded(t.after, {
    lockout: { ...byAddress(100), ...byAccount(5) },
    trusted: ['127.0.0.1']
  })
  const answers: Called[] = []
  for (let guess = 0; guess < 10; guess++) {
    answers.push(await attempt(gateway, 'alice', { 'x-forwarded-for': `203.0.113.${guess}` }))
  }
  t.same(statuses(answers), [401, 401, 401, 401, 401, 429, 429, 429, 429, 429])
})

t.test('one address that sprays over many accounts is told to wait', async t => {
  const gateway = await guarded(t.after, { lockout: { ...byAddress(6), ...byAccount(5) } })
  const answers: Called[] = []
  for (let guess = 0; guess < 9; guess++) answers.push(await attempt(gateway, `user-${guess}`))
  t.same(statuses(answers), [401, 401, 401, 401, 401, 401, 429, 429, 429])
  t.match(answers.at(-1)?.json, { errorCode: 'limit.exceeded' })
  t.ok(answers.at(-1)?.headers.get('retry-after'))
})

t.test('an address is not what the client says it is', async t => {
  const gateway = await guarded(t.after, { lockout: byAddress(3) })
  const answers: Called[] = []
  for (const name of [
    'x-forwarded-for',
    'x-real-ip',
    'forwarded',
    'x-client-ip',
    'true-client-ip',
    'cf-connecting-ip',
    'x-originating-ip',
    'via'
  ]) {
    answers.push(
      await attempt(gateway, `user-${name}`, {
        [name]: name === 'forwarded' ? `for=10.0.0.${answers.length}` : `10.0.0.${answers.length}`
      })
    )
  }
  t.same(statuses(answers), [401, 401, 401, 429, 429, 429, 429, 429])
})

t.test(
  'behind a load balancer only what it adds counts, and neighbours in one IPv6 network are one',
  async t => {
    const behind = async (...addresses: string[]) => {
      const gateway = await guarded(t.after, { lockout: byAddress(2), trusted: ['127.0.0.1'] })
      const answers: Called[] = []
      for (const address of addresses) {
        answers.push(
          await attempt(gateway, `user-${answers.length}`, { 'x-forwarded-for': address })
        )
      }
      return statuses(answers)
    }
    t.same(
      await behind('1.1.1.1, 203.0.113.9', '2.2.2.2, 203.0.113.9', '3.3.3.3, 203.0.113.9'),
      [401, 401, 429]
    )
    t.same(
      await behind(
        '2001:db8:1:2::1',
        '2001:db8:1:2:ffff::2',
        '2001:0DB8:0001:0002:abcd::3',
        '2001:db8:1:3::1'
      ),
      [401, 401, 429, 401]
    )
    t.same(await behind('203.0.113.9', '::ffff:203.0.113.9', '::FFFF:cb00:7109'), [401, 401, 429])
  }
)

t.test('all spellings of one user name share one count', async t => {
  const spellings = [
    'alice',
    'Alice',
    'ALICE',
    ' alice',
    'alice ',
    '\talice',
    'ali\u200bce',
    '\ufeffalice',
    'ａｌｉｃｅ',
    'alice\u0000',
    'al\u00adice',
    '\u202ealice',
    'a\u0301lice',
    '𝖆𝖑𝖎𝖈𝖊',
    'ⓐⓛⓘⓒⓔ',
    'alice\u00a0',
    'alice\u3000',
    'ali\ufe0fce'
  ]
  const gateway = await guarded(t.after, { lockout: byAccount(4) })
  const answers: Called[] = []
  for (const spelling of spellings) answers.push(await attempt(gateway, spelling))
  t.same(
    statuses(answers),
    spellings.map((_, index) => (index < 4 ? 401 : 429))
  )
  const escaped = await gateway.call(loginPath, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"username":"\\u0061lic\\u0065","password":"wrong"}'
  })
  t.equal(escaped.status, 429)
})

t.test('other spellings of the sign-in address are none', async t => {
  const gateway = await guarded(t.after, { lockout: byAddress(2) })
  const body = JSON.stringify({ username: 'alice', password })
  for (const path of [
    `${loginPath}/`,
    `/${loginPath}`,
    loginPath.toUpperCase(),
    loginPath.replace('/login', '//login'),
    loginPath.replace('/login', '/./login'),
    loginPath.replace('/login', '/x/../login'),
    loginPath.replace('login', '%6cogin'),
    loginPath.replace('/login', '%2flogin'),
    `${loginPath};x=1`,
    `${loginPath}%00`,
    `${loginPath}.json`,
    `${loginPath}#x`,
    `http://gateway.test${loginPath}`,
    loginPath.replace('/login', '\\login')
  ]) {
    const answer = await raw(
      gateway.url,
      request(
        `POST ${path}`,
        ['Content-Type: application/json', `Content-Length: ${body.length}`],
        body
      )
    )
    t.ok([400, 404].includes(answer.status), `${path}: ${answer.status}`)
    t.notMatch(answer.head, /set-cookie/i)
  }
  t.same(
    statuses([
      await attempt(gateway, 'alice'),
      await attempt(gateway, 'alice'),
      await gateway.call(`${loginPath}?x=1`, { json: { username: 'alice', password: 'wrong' } })
    ]),
    [401, 401, 429],
    'a query changes nothing'
  )
})

t.test('guesses at the same time do not slip past the count', async t => {
  const gateway = await guarded(t.after, { lockout: { ...byAddress(1000), ...byAccount(5) } })
  const answers = statuses(
    await Promise.all(Array.from({ length: 80 }, () => attempt(gateway, 'alice')))
  )
  t.equal(answers.filter(status => status === 401).length, 5)
  t.equal(answers.filter(status => status === 429).length, 75)
})

t.test('a right password gives back its count, and only its own', async t => {
  const gateway = await guarded(t.after, { lockout: { ...byAddress(3), ...byAccount(100) } })
  const answers: Called[] = []
  for (let round = 0; round < 6; round++) answers.push(await attempt(gateway, 'bob', {}, password))
  for (let round = 0; round < 4; round++) {
    answers.push(await attempt(gateway, 'alice'))
    answers.push(await attempt(gateway, 'bob', {}, password))
  }
  // Whoever knows one account cannot wash away guesses at another.
  t.same(statuses(answers), [200, 200, 200, 200, 200, 200, 401, 200, 401, 200, 401, 429, 429, 429])
})

t.test(
  'requests that are no sign-in cost no password check, and are not counted as one',
  async t => {
    const gateway = await guarded(t.after, { lockout: byAddress(2) })
    for (const body of [
      null,
      [],
      'x',
      5,
      true,
      {},
      { username: 'alice' },
      { password },
      { username: ['alice'], password },
      { username: { toString: 'alice' }, password },
      { username: 1, password: 2 },
      { username: 'alice', password: [password] },
      { username: 'alice', password: null },
      { username: '', password: '' },
      { username: 'a'.repeat(256), password },
      { username: 'alice', password: 'p'.repeat(1025) },
      [
        ['username', 'alice'],
        ['password', password]
      ]
    ]) {
      const answer = await gateway.call(loginPath, { method: 'POST', json: body })
      t.equal(answer.status, 400, JSON.stringify(body).slice(0, 60))
      isEnvelope(t, answer.text)
      t.same(answer.headers.getSetCookie(), [])
    }
    t.equal((await attempt(gateway, 'alice', {}, password)).status, 200)
  }
)

t.test('an unknown user and a wrong password look the same', async t => {
  const gateway = await guarded(t.after, {
    lockout: byAddress(1000),
    users: {
      users: {
        ...testUsers,
        carol: {
          ...testUsers.bob,
          id: '3',
          disabled: true
        }
      }
    }
  })
  const seen = async (username: string, typed = 'wrong') => {
    const { status, headers, text } = await attempt(gateway, username, {}, typed)
    const fields = [...headers].filter(([name]) => !['date', 'x-request-id'].includes(name))
    return [status, fields, text.replace(/"requestId":"[^"]*"/, '')]
  }
  const known = await seen('alice')
  for (const name of [
    'nobody',
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'Alice',
    'a'.repeat(255),
    '中文',
    '\u0000',
    '../users',
    '${jndi:ldap://x}'
  ]) {
    t.same(await seen(name), known, name.slice(0, 20))
  }
  t.same(await seen('carol', password), known, 'a disabled account with its right password too')
})

t.test('an unknown user takes as much computing as a wrong password', async t => {
  const { costs } = watchArgon2(t.after)
  const gateway = await testGateway(t.after)
  costs()
  const costOf = async (username: string) => {
    t.equal((await attempt(gateway, username)).status, 401)
    return costs()
  }
  const known = await costOf('alice')
  t.equal(known.length, 1)
  for (const name of ['nobody', 'Alice', '__proto__', 'a'.repeat(255)]) {
    t.same(await costOf(name), known, name.slice(0, 20))
  }
})

t.test('a flood of sign-ins leaves other callers alone', async t => {
  const argon2 = watchArgon2(t.after)
  const gateway = await testGateway(t.after, {
    limits: { inFlightPerUser: 500, lockout: noLockout }
  })
  const mine = await gateway.signIn()
  argon2.hold()
  let settled = 0
  const flood = Array.from({ length: 30 }, (_, index) =>
    attempt(gateway, `user-${index}`).then(answer => {
      settled++
      return answer
    })
  )
  await until('few are computed at a time', () => argon2.running() === 2)
  t.equal((await gateway.call('/api/account/profile', { cookie: mine })).status, 200)
  t.same([settled, argon2.running()], [0, 2], 'answered while they all wait for their turn')
  argon2.release()
  t.same([...new Set(statuses(await Promise.all(flood)))], [401])
})

t.end()
