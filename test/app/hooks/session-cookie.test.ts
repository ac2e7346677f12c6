import cookie, { Signer } from '@fastify/cookie'
import fc from 'fast-check'
import Fastify from 'fastify'
import t from 'tap'
import { createSessionCookieReader } from '../../../src/app/hooks/session-cookie.ts'
import { keyOf } from '../../../src/session/record.ts'
import { retainedBytes } from '../../support/retained.ts'

const name = 'sid'
const old = 'an older secret of at least thirty-two characters'
const young = 'a newer secret of at least thirty-two characters!'
const secrets = [young, old]
const signer = new Signer(secrets)
const app = Fastify()
await app.register(cookie)
const { parseCookie } = app
const createReader = () => createSessionCookieReader({ name, secrets })

/** By all of the cookies, as the plugin reads them. */
function readSlowly(header: string): string | undefined {
  const signed = parseCookie(header)[name]
  const { valid, value } = signer.unsign(signed ?? '')
  return valid && value !== null ? keyOf(value) : undefined
}

const signedValues = Array.from({ length: 8 }, (_, n) => new Signer(young).sign(`session ${n}`))
const values = [
  ...signedValues,
  ...signedValues.map(encodeURIComponent),
  encodeURIComponent(new Signer(old).sign('session 0')),
  encodeURIComponent(new Signer('a secret of somebody else, as long as ours').sign('session 0')),
  '',
  '%',
  'sid',
  'sid=1',
  `"${signedValues[0]}"`,
  `${signedValues[1]}=`
]
const names = ['sid', 'sid', 'sid', '-sid', 'sidx', '__Host-sid', 'SID', 'a', '']
const signs = ['=', '=', '=', ' = ', '', '==', '=\t']
const borders = ['; ', '; ', ';', ' ;', ';\t', ';;', ',', ' ']

const pair = fc
  .tuple(
    fc.constantFrom(...names),
    fc.constantFrom(...signs),
    fc.constantFrom(...values),
    fc.constantFrom(...borders)
  )
  .map(parts => parts.join(''))
const header = fc.array(pair, { maxLength: 4 }).map(pairs => pairs.join(''))

t.test('the cookie is read as from all cookies, the first time and later', async t => {
  const read = createReader()
  let found = 0
  fc.assert(
    fc.property(header, text => {
      const expected = readSlowly(text)
      if (expected !== undefined) found++
      return read(text) === expected && read(text) === expected
    }),
    { numRuns: 20_000 }
  )
  t.ok(found > 1000, `${found} headers named a session`)
})

t.test('cookies beyond those that are kept are read all the same', async t => {
  const read = createReader()
  const signed = Array.from({ length: 10_500 }, (_, n) => new Signer(young).sign(`value-${n}`))
  for (const round of [1, 2]) {
    const keys = signed.map(each => read(`a=1; sid=${encodeURIComponent(each)}`))
    t.same(
      keys,
      signed.map((_, n) => keyOf(`value-${n}`)),
      `round ${round}`
    )
  }
})

t.test('of a header only the session cookie is kept, and no padding', async t => {
  const read = createReader()
  const count = 1000
  const long = 'x'.repeat(8000)
  const retained = await retainedBytes(() => {
    for (let n = 0; n < count; n++) {
      const signed = encodeURIComponent(new Signer(young).sign(`a value that is long enough ${n}`))
      read(Buffer.from(`others=${long}; sid=${signed}`).toString())
      read(Buffer.from(`sid=${signed}${' '.repeat(8000)}; b=1`).toString())
    }
  })
  t.ok(retained < count * 2000, `${retained} bytes for ${count} cookies`)
})
