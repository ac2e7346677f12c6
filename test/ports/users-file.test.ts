/** A users file as a source. What clients see of it: http/guesses; reloads: process/reload/user-review. */
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
type Users = Parameters<typeof createUsersFile>[1]['users']
const sourceOf = (users: Users) => createUsersFile('users-file', { users })

credentialSourceContract(t, sourceOf({ alice }))

t.test('without an id and a name the user name stands for both, whatever it is', async t => {
  const names = ['bob', '__proto__', 'constructor']
  const users = Object.fromEntries(names.map(name => [name, user]))
  for (const username of names) {
    t.match(await sourceOf(users).verify(attempt({ username })), {
      vouched: true,
      identity: { id: username, username, name: username, roles: [], profile: {} }
    })
  }
})

t.test('who is disabled is refused, and a file without users refuses everybody', async t => {
  const disabled = { alice: { ...alice, disabled: true } }
  t.same(await sourceOf(disabled).verify(attempt()), { vouched: false, isFinal: true })
  t.same(await sourceOf({}).verify(attempt()), { vouched: false, isUnknown: true })
})

t.test('whoever it is, a password is computed once; an unknown one as the costliest', async t => {
  const { costs } = watchArgon2(t.after)
  const costly = { ...user, password: password.replace('t=2', 't=3') }
  const [usual, mixed] = [
    { alice, carol: { ...user, disabled: true } },
    { a: user, b: costly }
  ]
  const costOf = async (users: Users, username: string) => {
    await sourceOf(users).verify(attempt({ username, password: 'wrong' }))
    return costs()
  }
  const [known] = await costOf(usual, 'alice')
  t.match(known, { algorithm: 'argon2id', memory: 19_456, passes: 2, parallelism: 1 })
  for (const username of ['nobody', 'carol', '__proto__', '']) {
    t.same(await costOf(usual, username), [known], username)
  }
  t.same(await costOf({}, 'nobody'), [known], 'without any user')
  t.same(await costOf(mixed, 'nobody'), [{ ...known, passes: 3 }])
})
