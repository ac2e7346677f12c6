/** What is read in a back-end's answer to a sign-in, and in what a console typed. */
import { createCipheriv } from 'node:crypto'
import t from 'tap'
import type { UpstreamLoginConfig } from '../../src/config/schema/upstream-login.ts'
import { rawNumber } from '../../src/json/values.ts'
import { holdsCredential } from '../../src/login/leaked-credential.ts'
import { LoginResponse, plainMessage, valuesAt } from '../../src/login/login-response.ts'
import { decryptPassword, type PasswordCipher } from '../../src/login/password-cipher.ts'
import { stopClock } from '../support/clock.ts'

t.test('a path goes on in each item of a list, or in one where the name is its number', async t => {
  const user = { roles: [{ key: 'a' }, { key: ['b', 'c'] }, { other: 1 }, 'x', null] }
  const claims = { 'sub': 'al', 'http://schemas.example.org/role': ['x'] }
  const jwt = `e30.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.sign`
  const content = { user, list: [[{ a: 1 }], { a: 2 }], 0: { a: 1 }, jwt, text: 'a.b.c' }
  const found: Record<string, unknown[]> = {
    'user.roles.key': ['a', ['b', 'c']],
    'user.roles.1.key': [['b', 'c']],
    'user.roles.9.key': [],
    'user.roles': [user.roles],
    // A list in a list is no item, a number may be a member's name, and a name have dots.
    'list.a': [2],
    '0.a': [1],
    'jwt': [jwt],
    'jwt.sub': ['al'],
    'jwt.http://schemas.example.org/role': [['x']],
    'text.a': []
  }
  for (const [path, values] of Object.entries(found)) {
    t.same(valuesAt(content, path.split('.')), values, path)
  }
  // Only own members are there.
  for (const path of ['constructor', 'toString.name', '__proto__', 'list.length', 'list.map']) {
    t.same(valuesAt(content, path.split('.')), [], path)
  }
  t.same(valuesAt(null, ['a']), [])
  t.same(valuesAt('text', ['length']), [])
})

t.test('a message is one bounded line of plain text', async t => {
  const key = '🔑'
  for (const [message, ...said] of [
    ['验证码错误', '验证码错误'],
    ['second', 1, 'second'],
    ['a b c d', 'a\r\n\tb\u202ec\u0000 \ud800 d '],
    [key.repeat(100), key.repeat(1000)],
    [`x${key.repeat(99)}\ufffd`, `x${key.repeat(1000)}`],
    ['1 < 2 & 3', '1 < 2 & 3'],
    ...['', ' \n', '<b>x</b>', 'a <!-- x', 'a </p>', '<?xml', 7, null, {}].map(no => [
      undefined,
      no
    ]),
    [undefined]
  ]) {
    t.equal(plainMessage(said), message, JSON.stringify(said))
  }
})

type Unit = NonNullable<UpstreamLoginConfig['expires']>['as']
const units: readonly Unit[] = ['seconds', 'milliseconds', 'epoch-seconds', 'epoch-milliseconds']

t.test('an expiry that is empty, negative or of 1970 is none: no token ends by it', async t => {
  stopClock(t.after)
  const [first, now] = [Date.UTC(1971, 0), Date.now()]
  const zones = ['1970-01-01T08:00:00Z', '1970-01-01T00:00:00-05:00', '1970-01-02']
  const rows: ReadonlyArray<readonly [as: readonly Unit[], values: unknown[], expiry?: number]> = [
    [units, [-1, -2, '-1', '', ' ', null, false, 'never']],
    [units.slice(2), [0, '0']],
    [['date'], ['', '0001-01-01T00:00:00Z', ...zones]],
    [['date'], ['1971-01-01T00:00:00Z'], first],
    [['epoch-milliseconds'], [first - 1]],
    [['epoch-milliseconds'], [first, `${first}`], first],
    [['epoch-seconds'], [first / 1000], first],
    [units.slice(0, 2), [0, '0'], now],
    [['seconds'], [60, '60'], now + 60_000],
    [['milliseconds'], [60, '60'], now + 60]
  ]
  for (const [kinds, values, expiry] of rows) {
    for (const as of kinds) {
      for (const value of values) {
        const config = { outcomes: [], expires: { path: 'value', as } }
        const body = Buffer.from(JSON.stringify({ value }))
        const response = new LoginResponse(config, { status: 200, headers: {}, body })
        t.equal(response.credential({}).expiresAt, expiry, `${String(value)} as ${as}`)
      }
    }
  }
})

const long = '12345678901234567890'
const credential = { token: long, refreshToken: 'refresh', cookies: 'sid=s%3A42; tenant=1' }

t.test('a credential is found wherever it stands; other values are none', async t => {
  const whole = [long, rawNumber(long), 'refresh', 'sid=s%3A42', 's%3A42', credential.cookies]
  const hidden = whole.map(secret => ({ list: [{ ok: true }, { inner: [null, secret] }] }))
  let deep: unknown = 'refresh'
  for (let level = 0; level < 100_000; level++) deep = [deep]
  // A long one is found within a text, and as the name of a member.
  for (const value of [...hidden, { a: `Bearer ${long}` }, { a: { [long]: 1 } }]) {
    t.ok(holdsCredential(value, { credential }), JSON.stringify(value))
  }
  const holder = { tokens: { other: credential } }
  t.ok(holdsCredential([['refresh']], holder))
  t.ok(holdsCredential({ a: [4711] }, { credential: { token: '4711' } }), 'a short one as a number')
  t.throws(() => holdsCredential(deep, holder), { code: 'shape.not-json' })
  const others = { id: 1, name: 'refresher', flags: [true, null, ''], number: 1234567890 }
  for (const [value, of] of [
    [others, credential],
    [{ a: 'refresh' }, undefined],
    [{ id: 1234567 }, { cookies: 'tenant=1234567' }],
    [{ id: '1', lang: 'zh' }, { cookies: 'tenant=1; lang=zh' }],
    [{ who: 'Administrator' }, { cookies: 'sid=0123456789; user_id=Administrator' }],
    [{ a: '', b: 'undefined' }, { cookies: '' }]
  ] as const) {
    const identity = { id: '1', username: 'Administrator', name: 'Ann', roles: [], profile: {} }
    t.notOk(holdsCredential(value, of && { credential: of, identity }), JSON.stringify(value))
  }
})

const ciphers: readonly PasswordCipher[] = [
  { key: '0123456789abcdef', iv: 'fedcba9876543210' },
  { key: '0123456789abcdef0123456789abcdef', iv: 'fedcba9876543210' },
  { key: '0123456789abcdef01234567' }
]

t.test('what a console encrypts is read by any length of key; other texts stay', async t => {
  const encrypt = (password: string, { key, iv }: PasswordCipher) => {
    const mode = iv === undefined ? 'ecb' : 'cbc'
    const cipher = createCipheriv(`aes-${key.length * 8}-${mode}`, key, iv ?? null)
    return cipher.update(password, 'utf8', 'base64') + cipher.final('base64')
  }
  const texts = ['a', 'correct horse', '0123456789abcdef0123456789abcdef', '====']
  for (const [index, cipher] of ciphers.entries()) {
    for (const password of ['a', 'ä ö 密码', 'x'.repeat(500)]) {
      t.equal(decryptPassword(encrypt(password, cipher), cipher), password)
    }
    const another = ciphers[(index + 1) % ciphers.length] as PasswordCipher
    for (const text of [...texts, encrypt('secret of another console', another)]) {
      t.equal(decryptPassword(text, cipher), text)
    }
  }
})
