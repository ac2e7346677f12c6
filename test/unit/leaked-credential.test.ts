import t from 'tap'
import { holdsCredential } from '../../src/login/leaked-credential.ts'
import { rawNumber } from '../../src/json/values.ts'

const credential = {
  token: '12345678901234567890',
  refreshToken: 'refresh',
  cookies: 'sid=s%3A42; tenant=1'
}

t.test('each secret is found, however deep it stands', async t => {
  for (const secret of [
    '12345678901234567890',
    rawNumber('12345678901234567890'),
    'refresh',
    'sid=s%3A42',
    's%3A42',
    'sid=s%3A42; tenant=1'
  ]) {
    t.ok(holdsCredential({ list: [{ ok: true }, { inner: [null, secret] }] }, credential))
  }
  let deep: unknown = 'refresh'
  for (let level = 0; level < 100_000; level++) deep = [deep]
  t.ok(holdsCredential(deep, credential))
})

t.test('a long token is found within a text, and as the name of a member', async t => {
  t.ok(holdsCredential({ a: 'Bearer 12345678901234567890' }, credential))
  t.ok(holdsCredential({ a: { '12345678901234567890': 1 } }, credential))
})

t.test('other values are no secrets', async t => {
  const value = { id: 1, name: 'refresher', flags: [true, null, ''], number: 1234567890 }
  t.notOk(holdsCredential(value, credential))
  t.notOk(holdsCredential({ a: 'refresh' }, undefined))
  t.notOk(holdsCredential({ id: '1', lang: 'zh' }, { cookies: 'tenant=1; lang=zh' }))
  t.notOk(holdsCredential({ a: '', b: 'undefined' }, { cookies: '' }))
})
