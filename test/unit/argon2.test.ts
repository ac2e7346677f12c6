import t from 'tap'
import { decoyHash, hashPassword, parseHash, verifyPassword } from '../../src/login/argon2.ts'

/** Passwords by their hashes, of the reference implementation's own tests. */
const vectors: Readonly<Record<string, string>> = {
  '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc':
    'password',
  '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc':
    'password',
  '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$C4TWUs9rDEvq7w3+J4umqA32aWKB1+DSiRuBfYxFj94':
    'differentpassword'
}
/** As cheap as a hash can be. */
const cheap = parseHash(
  '$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc'
)

t.test('hashes that other programs made are understood', async t => {
  for (const [hash, password] of Object.entries(vectors)) {
    t.equal(await verifyPassword(password, parseHash(hash)), true, hash)
    t.equal(await verifyPassword(`${password} `, parseHash(hash)), false, hash)
  }
})

t.test('a hash is as costly as OWASP advises, and salted: two of one password differ', async t => {
  const [one, other] = [await hashPassword('secret'), await hashPassword('secret')]
  t.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  t.not(one, other)
  for (const hash of [one, other]) t.ok(await verifyPassword('secret', parseHash(hash)))
})

t.test('a password counts whole and exactly: long ones, other scripts, a zero byte', async t => {
  for (const [right, wrong] of [
    ['x'.repeat(1000), 'x'.repeat(999)],
    ['пароль🔑', 'пароль'],
    ['a\u0000b', 'a'],
    ['é', 'e\u0301']
  ] as const) {
    const hash = parseHash(await hashPassword(right))
    t.equal(await verifyPassword(right, hash), true)
    t.equal(await verifyPassword(wrong, hash), false)
  }
})

t.test('the decoy costs what the model costs, and no password fits it', async t => {
  const model = parseHash(Object.keys(vectors)[0] ?? '')
  const decoy = decoyHash(model)
  t.match(decoy, { memory: 256, passes: 2, parallelism: 2 })
  t.equal(decoy.tag.length, model.tag.length)
  t.notSame(decoyHash(model).tag, decoy.tag)
  t.equal(await verifyPassword('password', decoy), false)
  t.match(decoyHash(), { memory: 19_456, passes: 2, parallelism: 1 })
})

t.test('so many may wait for their verdict; who comes then is told to come back', async t => {
  const settled = await Promise.allSettled(
    Array.from({ length: 150 }, () => verifyPassword('x', cheap))
  )
  t.equal(settled.filter(({ status }) => status === 'fulfilled').length, 102)
  const refused = settled
    .filter(result => result.status === 'rejected')
    .map(({ reason }: { reason: unknown }) => reason)
  t.equal(refused.length, 48)
  for (const reason of refused) {
    t.match(reason, { code: 'overloaded', status: 503, detail: { retryAfter: 1 } })
  }
  t.equal(await verifyPassword('x', cheap), false, 'afterwards there is room again')
})
