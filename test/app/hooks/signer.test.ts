import { Signer } from '@fastify/cookie'
import t from 'tap'
import { createCachedSigner } from '../../../src/app/hooks/signer.ts'
import { retainedBytes } from '../../support/retained.ts'

const old = 'an older secret of at least thirty-two characters'
const young = 'a newer secret of at least thirty-two characters!'

t.test('a value whose signature an older secret made is signed as it came', async t => {
  const signed = new Signer(old).sign('value')
  const signer = createCachedSigner([young, old])
  t.match(signer.unsign(signed), { valid: true, value: 'value' })
  t.equal(signer.sign('value'), signed)
  t.equal(
    signer.sign('another'),
    new Signer(young).sign('another'),
    'what it has not seen is signed by the newest'
  )
})

t.test('a signature of none of the secrets is not valid, and leaves nothing behind', async t => {
  const signer = createCachedSigner([young])
  t.match(signer.unsign(new Signer(old).sign('value')), { valid: false })
  t.equal(signer.sign('value'), new Signer(young).sign('value'))
})

t.test('cookies beyond those that are kept verify all the same', async t => {
  const signer = createCachedSigner([young])
  const signed = Array.from({ length: 10_500 }, (_, n) => signer.sign(`value-${n}`))
  for (const round of [1, 2]) {
    t.ok(
      signed.every(each => signer.unsign(each).valid),
      `round ${round}`
    )
  }
})

t.test('of a request only the session cookie is kept, not the other cookies beside it', async t => {
  const signer = createCachedSigner([young])
  const count = 1000
  const others = 'x'.repeat(8000)
  const retained = await retainedBytes(() => {
    for (let n = 0; n < count; n++) {
      const signed = new Signer(young).sign(`a value that is long enough ${n}`)
      // As it is read from the header: a part of its text.
      const header = Buffer.from(`others=${others}; sid=${signed}`).toString()
      signer.unsign(header.slice(-signed.length))
    }
  })
  t.ok(retained < count * 2000, `${retained} bytes for ${count} cookies`)
  t.ok(signer.unsign(new Signer(young).sign('a value that is long enough 0')).valid)
})
