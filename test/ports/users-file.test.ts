import t from 'tap'
import { hashPassword } from '../../src/login/argon2.ts'
import { createUsersFile } from '../../src/login/file-users.ts'
import { watchArgon2 } from '../support/argon2.ts'
import { attempt, credentialSourceContract, rightPassword } from './credential-source.ts'

const password = await hashPassword(rightPassword)
const user = { password, roles: [], disabled: false, profile: {} }
const alice = {
  ...user,
  id: '1',
  name: 'Alice',
  roles: ['admin', 'user'],
  profile: { email: 'alice@example.com' }
}

credentialSourceContract(t, createUsersFile('users-file', { users: { alice } }))

t.test('without an id and a name the user name stands for both', async t => {
  t.match(
    await createUsersFile('users-file', { users: { bob: user } }).verify(
      attempt({ username: 'bob' })
    ),
    { vouched: true, identity: { id: 'bob', username: 'bob', name: 'bob', roles: [], profile: {} } }
  )
})

t.test('a user who is disabled is refused like an unknown one', async t => {
  t.same(
    await createUsersFile('users-file', { users: { alice: { ...alice, disabled: true } } }).verify(
      attempt()
    ),
    { vouched: false, isFinal: true }
  )
})

t.test('users may be called like what objects are born with', async t => {
  const users = JSON.parse(
    JSON.stringify({ constructor: user }).replace('{', `{"__proto__": ${JSON.stringify(user)}, `)
  ) as Parameters<typeof createUsersFile>[1]['users']
  const source = createUsersFile('users-file', { users })
  for (const username of ['__proto__', 'constructor']) {
    t.match(await source.verify(attempt({ username })), {
      vouched: true,
      identity: { id: username }
    })
  }
})

t.test('whoever it is, a password is computed once and costs as much as a known one', async t => {
  const { costs } = watchArgon2(t.after)
  const source = createUsersFile('users-file', {
    users: { alice, carol: { ...user, disabled: true } }
  })
  const costOf = async (username: string, from = source) => {
    await from.verify(attempt({ username, password: 'wrong' }))
    return costs()
  }
  const known = await costOf('alice')
  t.match(known, [{ algorithm: 'argon2id', memory: 19_456, passes: 2, parallelism: 1 }])
  for (const other of ['nobody', 'carol', '__proto__', '']) {
    t.same(await costOf(other), known, other)
  }
  t.same(
    await costOf('nobody', createUsersFile('users-file', { users: {} })),
    known,
    'without any user'
  )
})

t.test('a file without users refuses everybody', async t => {
  const refusal = { vouched: false, isUnknown: true }
  t.same(await createUsersFile('users-file', { users: {} }).verify(attempt()), refusal)
})

t.test('with hashes of several costs, an unknown user costs the greatest', async t => {
  const { costs } = watchArgon2(t.after)
  const costly = { ...user, password: password.replace('t=2', 't=3') }
  const source = createUsersFile('users-file', { users: { a: user, b: costly, c: user } })
  await source.verify(attempt({ username: 'nobody', password: 'wrong' }))
  t.match(costs(), [{ passes: 3 }])
})
