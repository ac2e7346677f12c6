import { Signer } from '@fastify/cookie'
import t from 'tap'
import { rememberingSigner } from '../../src/hooks/signer.ts'

const old = 'an older secret of at least thirty-two characters'
const young = 'a newer secret of at least thirty-two characters!'

t.test('a value whose signature an older secret made is signed as it came', async t => {
  const signed = new Signer(old).sign('value')
  const signer = rememberingSigner([young, old])
  t.match(signer.unsign(signed), { valid: true, value: 'value' })
  t.equal(signer.sign('value'), signed)
  t.equal(
    signer.sign('another'),
    new Signer(young).sign('another'),
    'what it has not seen is signed by the newest'
  )
})

t.test('a signature of none of the secrets is not valid, and leaves nothing behind', async t => {
  const signer = rememberingSigner([young])
  t.match(signer.unsign(new Signer(old).sign('value')), { valid: false })
  t.equal(signer.sign('value'), new Signer(young).sign('value'))
})

t.test('cookies beyond those that are kept verify all the same', async t => {
  const signer = rememberingSigner([young])
  const signed = Array.from({ length: 10_500 }, (_, n) => signer.sign(`value-${n}`))
  for (const round of [1, 2])
    t.ok(
      signed.every(each => signer.unsign(each).valid),
      `round ${round}`
    )
})
