import t from 'tap'
import { hashPassword } from '../../src/login/argon2.ts'
import { createUsersFile } from '../../src/login/users-file.ts'
import { attempt, credentialSourceContract, rightPassword } from '../contract/credential-source.ts'

const password = await hashPassword(rightPassword)
const user = { password, roles: [], disabled: false, profile: {} }
const alice = { ...user, id: '1', name: 'Alice', roles: ['admin', 'user'], profile: { email: 'alice@example.com' } }

credentialSourceContract(t, createUsersFile({ users: { alice } }))

t.test('without an id and a name the user name stands for both', async t => {
  t.match(await createUsersFile({ users: { bob: user } }).verify(attempt({ username: 'bob' })), { vouched: true, identity: { id: 'bob', username: 'bob', name: 'bob', roles: [], profile: {} } })
})

t.test('a user who is disabled is refused like an unknown one', async t => {
  t.same(await createUsersFile({ users: { alice: { ...alice, disabled: true } } }).verify(attempt()), { vouched: false })
})

t.test('users may be called like what objects are born with', async t => {
  const users = JSON.parse(JSON.stringify({ constructor: user }).replace('{', `{"__proto__": ${JSON.stringify(user)}, `)) as Parameters<typeof createUsersFile>[0]['users']
  const source = createUsersFile({ users })
  for (const username of ['__proto__', 'constructor']) t.match(await source.verify(attempt({ username })), { vouched: true, identity: { id: username } })
})

t.test('a file without users refuses everybody, and takes its time for it', async t => {
  t.same(await createUsersFile({ users: {} }).verify(attempt()), { vouched: false })
})

t.test('an unknown user costs as much as a known one', async t => {
  const source = createUsersFile({ users: { alice } })
  const median = async (username: string) => {
    const times: number[] = []
    for (let index = 0; index < 9; index++) {
      const began = performance.now()
      await source.verify(attempt({ username, password: 'wrong' }))
      times.push(performance.now() - began)
    }
    return times.toSorted((a, b) => a - b)[4] ?? 0
  }
  const [known, unknown] = [await median('alice'), await median('nobody')]
  t.ok(unknown > known / 3 && unknown < known * 3, `${known} ms and ${unknown} ms`)
})
