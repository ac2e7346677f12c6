/** Guesses at passwords: counted before a password is looked at, and told nothing of who exists. */
import t, { type Test } from 'tap'
import { watchArgon2 } from '../support/argon2.ts'
import { stopClock } from '../support/clock.ts'
import {
  type Called,
  cookieOf,
  type Files,
  noLockout,
  password,
  type TestGateway,
  testGateway
} from '../support/gateway.ts'
import { json, testUpstream } from '../support/upstream.ts'
import { hashOf, testUsers } from '../support/users.ts'
import { isEnvelope, loginPath } from '../support/wire.ts'
import { credentialSourceContract, rightPassword } from '../ports/credential-source.ts'

const minute = 60_000
const { costs } = watchArgon2(t.teardown)
const pass = stopClock(t.teardown)
const trusted = { server: { trustedProxies: ['127.0.0.1'] } }

const guarded = (t: Pick<Test, 'after'>, lockout: object, more: Files = {}) =>
  testGateway(t.after, { gateway: trusted, ...more, limits: { lockout, limits: {} } })

const hash = hashOf(password)
const names = ['ada', 'ben', 'cleo', 'dora']
const people = Object.fromEntries(names.map(name => [name, { password: hash, id: name }]))
/** With the bounds that hold without config. Each test has accounts and addresses of its own there. */
const usual = await guarded(t, {}, { users: { users: people } })

interface From {
  readonly address?: string
  readonly cookie?: string
  readonly typed?: string
}

const attempt = (
  gateway: TestGateway,
  username: string,
  { address = '198.51.100.1', cookie, typed = 'wrong' }: From = {}
) =>
  gateway.call(loginPath, {
    json: { username, password: typed },
    headers: { 'x-forwarded-for': address },
    ...(cookie !== undefined && { cookie })
  })

const setKnown = ({ headers }: Called) =>
  headers.getSetCookie().find(cookie => /^(?:__Host-)?console_known=/.test(cookie)) ?? ''
const knownOf = (answer: Called) => setKnown(answer).split(';', 1)[0] ?? ''
const statuses = async (
  gateway: TestGateway,
  times: number,
  username: string | ((index: number) => string),
  from: (index: number) => From = () => ({})
) =>
  await Array.fromAsync({ length: times }, async (_, index) => {
    const name = typeof username === 'string' ? username : username(index)
    return (await attempt(gateway, name, from(index))).status
  })
/** So many refused, then so many that have to wait. */
const refused = (some: number, others: number): number[] => [
  ...Array<number>(some).fill(401),
  ...Array<number>(others).fill(429)
]

t.test('guesses at an account are held up for a time that ends by itself', async t => {
  const right = { typed: password }
  t.same(await statuses(usual, 6, 'ada'), refused(5, 1))
  const told = await attempt(usual, ' ADA', right)
  t.match(told, { status: 429, json: { errorCode: 'login.locked' } }, 'not even the right one')
  isEnvelope(t, told.text)
  t.equal(told.headers.get('retry-after'), '300')
  t.equal((await attempt(usual, 'ben', right)).status, 200, 'nobody else is locked')
  pass(5 * minute)
  t.equal((await attempt(usual, 'ada')).status, 401)
  // Nobody can make a lock longer by trying while it lasts.
  for (let seconds = 0; seconds < 300; seconds += 100) {
    const { headers } = await attempt(usual, 'ada')
    t.equal(headers.get('retry-after'), String(300 - seconds))
    pass(100_000)
  }
  t.equal((await attempt(usual, 'ada', right)).status, 200)
})

t.test('guesses from many addresses are slowed, while a known browser signs in', async t => {
  const home = { typed: password, address: '203.0.113.7' }
  const known = knownOf(await attempt(usual, 'cleo', home))
  const spread = (index: number) => ({ address: `192.0.2.${index}` })
  t.same(await statuses(usual, 60, 'cleo', spread), refused(50, 10))
  t.equal((await attempt(usual, 'cleo', { ...home, cookie: known })).status, 200)
  t.equal((await attempt(usual, 'cleo', home)).status, 429, 'from there, by another browser')
  pass(15 * minute)
  t.same(await statuses(usual, 2, 'cleo', spread), [401, 429])
})

t.test('an address that guesses at many accounts has to wait, a known browser not', async t => {
  const address = '198.51.100.3'
  const right = { typed: password, address }
  const cookie = knownOf(await attempt(usual, 'dora', right))
  const [name, from] = [(index: number) => `user-${index}`, () => ({ address })]
  t.same(await statuses(usual, 21, name, from), refused(20, 1))
  const told = await attempt(usual, 'dora', right)
  t.match(told, { status: 429, json: { errorCode: 'limit.exceeded' } })
  t.equal((await attempt(usual, 'dora', { ...right, cookie })).status, 200)
  pass(minute)
  t.same(await statuses(usual, 2, 'user-x', from), [401, 429], 'one more each minute')
})

t.test('a lock is told once in the log and counted; neither password nor cookie is', async t => {
  const gateway = await guarded(t, {})
  const address = '198.51.100.5'
  const cookie = knownOf(await attempt(gateway, 'bob', { typed: password }))
  const guess = { typed: 'never-logged', address, cookie }
  await statuses(gateway, 8, 'al\nice\u001b[31m', () => guess)
  const locks = gateway.log.filter(({ event }) => event === 'login.lock')
  t.match(locks, [{ kind: 'accountAndAddress', user: 'alice[31m', address, seconds: 300 }])
  const counted = await gateway.metrics()
  t.match(counted, 'console_gateway_lockouts_total{of="accountAndAddress"} 1\n')
  const refusals = 'console_gateway_limit_refused_total{limit="lockout.accountAndAddress"} 3\n'
  t.match(counted, refusals)
  t.notMatch(JSON.stringify(gateway.log), /never-logged|console_known/)
})

t.test('the cookie is bound to the account, signed, ends, and opens nothing', async t => {
  const almostSame = { jose: { password: hash, id: '3' }, José: { password: hash, id: '4' } }
  const users = { users: { ...testUsers, ...almostSame } }
  const gateway = await guarded(t, { accountAndAddress: { failures: 1 } }, { users })
  const signIn = async (username: string, cookie = '') =>
    await attempt(gateway, username, { typed: password, cookie })
  const answer = await signIn('alice')
  t.match(setKnown(answer), /; Max-Age=7776000; Path=\/; HttpOnly; SameSite=Strict$/)
  const known = knownOf(answer)
  t.notMatch(decodeURIComponent(known), /alice/i)
  t.equal(await gateway.status('/api/account/profile', { cookie: known }), 401)
  const isStranger = async (cookie: string, username = 'alice') => {
    await attempt(gateway, username)
    const { status } = await signIn(username, cookie)
    pass(48 * 60 * minute)
    return status === 429
  }
  t.equal(await isStranger(known), false)
  t.equal(await isStranger(known, 'bob'), true)
  const [name, value = ''] = known.split('=')
  const unsigned = value.split('.').slice(0, -1).join('.')
  const renamed = value.replace(/^[^.]+/, 'AAAAAAAAAAAAAAAAAAAAAA')
  const ofSession = cookieOf(answer).split('=')[1] ?? ''
  for (const forged of [value.slice(0, -1), unsigned, renamed, ofSession, '', 'a.b.c']) {
    t.equal(await isStranger(`${name}=${forged}`), true, forged)
  }
  const ofJose = knownOf(await signIn('jose'))
  const almost = [await isStranger(ofJose, 'jose'), await isStranger(ofJose, 'José')]
  t.same(almost, [false, true], 'nor is it that of an account of almost the same name')
  const both = knownOf(await signIn('bob', known))
  const strangers = [await isStranger(both), await isStranger(both, 'bob')]
  t.same(strangers, [false, false], 'people share browsers: each of the last accounts knows it')
  pass(90 * 24 * 60 * minute)
  t.equal(await isStranger(known), true)
  const secure = { gateway: { session: { cookie: { secure: true } } } }
  const overHttps = await attempt(await guarded(t, {}, secure), 'alice', { typed: password })
  t.match(setKnown(overHttps), /^__Host-console_known=.*; Path=\/; .*Secure/)
})

for (const [kind, some, others] of [
  ['accountAndAddress', 2, 1],
  ['address', 2, 1],
  ['account', 2, 1],
  ['nothing', 60, 0]
] as const) {
  t.test(`a known browser, also with a stolen cookie, has its own count: ${kind}`, async t => {
    const counted = kind === 'nothing' ? {} : { [kind]: { failures: some } }
    const gateway = await guarded(t, { ...noLockout, ...counted })
    const cookie = knownOf(await attempt(gateway, 'alice', { typed: password }))
    for (const from of [() => ({}), (index: number) => ({ cookie, address: `192.0.2.${index}` })]) {
      t.same(await statuses(gateway, some + others, 'alice', from), refused(some, others))
    }
    const elsewhere = await attempt(gateway, 'alice', { typed: password, address: '203.0.113.1' })
    t.equal(elsewhere.status, kind === 'account' ? 429 : 200, 'which locks nobody else')
  })
}

const two = { failures: 2 }
const signsIn = { kind: 'upstream-login', path: '/login', user: { id: 'id' } }
/** What the first source answers to every password; the bounds; so many 502, then so many 429. */
for (const [title, first, bounds, failed, locked] of [
  ['what nobody could decide is no failure', 500, { account: two, address: two }, 5, 0],
  ['what the first refused counts for the address', 401, { address: two }, 2, 1],
  ['and for the account from the 51st on within an hour', 401, { account: two }, 52, 1]
] as const) {
  t.test(`where the second source fails: ${title}`, async t => {
    const [a, b] = [
      await testUpstream(t.after, json(first, {})),
      await testUpstream(t.after, json(500, {}))
    ]
    const gateway = await testGateway(t.after, {
      gateway: {
        identity: { prefix: true },
        login: { sources: { a: { ...signsIn, upstream: 'a' } } }
      },
      backend: b.url,
      source: {},
      routes: { upstreams: { a: { url: a.url } } },
      limits: { lockout: { ...noLockout, ...bounds }, limits: {} }
    })
    const expected = [...Array<number>(failed).fill(502), ...Array<number>(locked).fill(429)]
    t.same(await statuses(gateway, failed + locked, 'alice'), expected)
  })
}

const every = '10m'
const byAddress = (failures: number) => ({ ...noLockout, address: { failures, every } })

t.test('an address is not what a client says; neighbours in an IPv6 network are one', async t => {
  const direct = await guarded(t, byAddress(2), { gateway: {} })
  const forged = (index: number) => ({ address: `10.0.0.${index}` })
  t.same(await statuses(direct, 3, 'alice', forged), refused(2, 1))
  const gateway = await guarded(t, byAddress(2))
  const network = ['2001:db8:1:2::1', '2001:db8:1:2:ffff::2', '2001:0DB8:0001:0002:abcd::3']
  const from = [...network, '2001:db8:1:3::1'].map(address => ({ address }))
  const guesses = await statuses(gateway, 4, 'alice', index => from[index] ?? {})
  t.same(guesses, [401, 401, 429, 401])
})

t.test('all spellings of one user name share one count, of one sign-in address too', async t => {
  const spellings = [
    ...['alice', 'ALICE', ' alice', 'alice\u3000', 'ali\u200bce', '\ufeffalice', 'alice\u0000'],
    ...['al\u00adice', '\u202ealice', 'ali\ufe0fce', 'ａｌｉｃｅ', 'a\u0301lice', 'ⓐⓛⓘⓒⓔ']
  ]
  const gateway = await guarded(t, { ...noLockout, account: { failures: 4, every } })
  const guesses = await statuses(gateway, spellings.length, index => spellings[index] ?? '')
  t.same(guesses, refused(4, spellings.length - 4))
  const right = { json: { username: 'alice', password } }
  t.equal(await gateway.status(`${loginPath}?x=1`, right), 429)
})

t.test('a right password gives back its count, and only its own', async t => {
  const gateway = await guarded(t, byAddress(3))
  const right = () => ({ typed: password })
  t.same(new Set(await statuses(gateway, 8, 'bob', right)), new Set([200]), 'a whole office')
  const answers: number[] = []
  for (let round = 0; round < 4; round++) {
    const guess = await statuses(gateway, 1, 'alice')
    answers.push(...guess, ...(await statuses(gateway, 1, 'bob', right)))
  }
  // Whoever knows one account cannot wash away guesses at another.
  t.same(answers, [401, 200, 401, 200, 401, 429, 429, 429])
})

t.test('requests that are no sign-in are not counted as one', async t => {
  const gateway = await guarded(t, byAddress(2))
  const username = 'alice'
  for (const body of [
    ...[null, [], 'x', true, {}, { username }, { password }, { username, password: '' }],
    ...[['alice'], 1, '', 'a'.repeat(256)].map(each => ({ username: each, password })),
    ...[[password], null, 'p'.repeat(1025)].map(each => ({ username, password: each }))
  ]) {
    const answer = await gateway.call(loginPath, { method: 'POST', json: body })
    t.equal(answer.status, 400, JSON.stringify(body).slice(0, 60))
    isEnvelope(t, answer.text)
  }
  t.equal((await attempt(gateway, 'alice', { typed: password })).status, 200)
})

t.test('an unknown user and a wrong password look, take and are locked the same', async t => {
  const carol = { ...testUsers.bob, id: '3', disabled: true }
  const bounds = { ...noLockout, accountAndAddress: { failures: 1 } }
  const gateway = await guarded(t, bounds, { users: { users: { ...testUsers, carol } } })
  const seen = async (username: string, typed = 'wrong') => {
    const found = []
    costs()
    for (const expected of [401, 429]) {
      const { status, headers, text } = await attempt(gateway, username, { typed })
      t.equal(status, expected)
      t.same(headers.getSetCookie(), [])
      const fields = [...headers].filter(([name]) => !['date', 'x-request-id'].includes(name))
      found.push(fields, text.replace(/"requestId":"[^"]*"/, ''))
    }
    const computed = costs()
    t.equal(computed.length, 1, `${username}: one password is computed`)
    return [...found, computed]
  }
  const known = await seen('alice')
  for (const name of ['nobody', '__proto__', '中文', '${jndi:ldap://x}', 'a'.repeat(255), '\0']) {
    t.same(await seen(name), known, name.slice(0, 20))
  }
  t.same(await seen('carol', password), known, 'a disabled account with its right password too')
})

t.test('an unknown user costs what the costliest of the file does, or what is usual', async t => {
  const costly = { password: hash.replace('t=1', 't=3') }
  for (const [users, cost] of [
    [
      { ada: { password: hash }, ben: costly },
      { memory: 1024, passes: 3 }
    ],
    [{}, { memory: 19_456, passes: 2 }]
  ] as const) {
    const gateway = await guarded(t, noLockout, { users: { users } })
    costs()
    t.equal((await attempt(gateway, 'nobody')).status, 401)
    t.match(costs(), [{ algorithm: 'argon2id', ...cost, parallelism: 1 }])
  }
})

t.test('a users file', async t => {
  const alice = { ...testUsers.alice, name: 'Alice', password: hashOf(rightPassword) }
  credentialSourceContract(t, await guarded(t, noLockout, { users: { users: { alice } } }))
})
