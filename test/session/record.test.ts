/** Records as they are read from the store: whole, or none. */
import t from 'tap'
import {
  endReasonOf,
  keyOf,
  parseRecord,
  publicId,
  type Session,
  signedInOf,
  writeRecord
} from '../../src/session/record.ts'

const session: Session = {
  id: 'public',
  identity: { id: '1', username: 'mia', name: 'Mia', roles: ['clerk'], profile: { age: 7 } },
  source: 'users-file',
  remembered: false,
  createdAt: 1,
  absoluteEnd: 3,
  idleMs: 2,
  address: '192.0.2.1',
  agent: 'test'
}
const { identity } = session
const file = { password: 'digest', state: 'digest' }

/** @returns what is read of a session with these members */
const reread = (changes: object, epoch: unknown = 4) =>
  parseRecord(JSON.stringify({ session: { ...session, ...changes }, epoch }))

t.test('what was written is read', async t => {
  const full = { ...session, file, credential: { token: 'T' }, fence: 1 }
  for (const written of [session, full, { ...session, identity: { ...identity, roles: [] } }]) {
    t.same(parseRecord(writeRecord({ session: written, epoch: 4 })), { session: written, epoch: 4 })
  }
})

t.test('a record with one member of another type is none', async t => {
  const others: readonly unknown[] = [undefined, null, 5, {}, ['text']]
  for (const member of ['id', 'source', 'address', 'agent']) {
    for (const other of others) t.equal(reread({ [member]: other }), undefined, member)
  }
  for (const member of ['id', 'username', 'name']) {
    for (const other of others) {
      const changed = { identity: { ...identity, [member]: other } }
      t.equal(reread(changed), undefined, `identity.${member}`)
    }
  }
  for (const roles of [undefined, null, 'admin', {}, { length: 0 }, ['clerk', 5], [null]]) {
    t.equal(reread({ identity: { ...identity, roles } }), undefined, JSON.stringify(roles))
  }
  for (const other of [undefined, null, '5', {}, []]) {
    for (const member of ['createdAt', 'absoluteEnd', 'idleMs']) {
      t.equal(reread({ [member]: other }), undefined, member)
    }
    t.equal(reread({}, other === undefined ? null : other), undefined, 'epoch')
  }
  for (const other of [null, 'digest', 5, {}, { password: 'a' }, { state: 'a' }]) {
    t.equal(reread({ file: other }), undefined, 'file')
  }
  t.equal(reread({ file: { ...file, state: 5 } }), undefined)
  t.equal(reread({ file: { ...file, password: 5 } }), undefined)
  t.match(reread({ file }), { session: { file } })
})

t.test('a text that is no record is none, and throws nothing', async t => {
  for (const text of ['', '{', 'null', '5', '[]', '{}', '{"session":null,"epoch":1}']) {
    t.equal(parseRecord(text), undefined, text)
  }
})

t.test('reasons, names and keys', async t => {
  for (const reason of [
    'unknown',
    'idle',
    'absolute',
    'revoked',
    'replaced',
    'upstream'
  ] as const) {
    t.equal(endReasonOf(reason), reason)
  }
  t.equal(endReasonOf('of later'), 'revoked')
  const key = keyOf('a secret')
  t.match(key, /^[0-9a-f]{64}$/)
  t.equal(publicId(key), key.slice(0, 12))
  t.same(signedInOf(session), { source: 'users-file', id: '1', username: 'mia' })
})
