/** The users file is the truth at each look-up; a change of it ends sessions after a reload. */
import t from 'tap'
import { massChange } from '../../src/login/changed-users.ts'
import {
  createFileUsers,
  identityOf,
  passwordDigest,
  type Sources
} from '../../src/login/file-users.ts'
import { newSession } from '../support/sessions.ts'

type User = Parameters<typeof passwordDigest>[0]

const userOf = (more: Partial<User> = {}): User =>
  ({ password: 'a hash', roles: ['clerk'], profile: {}, disabled: false, ...more }) as User

const filesOf = (users: Record<string, User>, others: object = {}) =>
  ({
    gateway: {
      login: { sources: { 'users-file': { kind: 'users-file', file: 'users.yaml' }, ...others } }
    },
    users: { 'users.yaml': { users } }
  }) as unknown as Sources

const source = 'users-file'
const sessionOf = (username: string, user = userOf()) =>
  newSession(username, {
    source,
    identity: identityOf(username, user),
    password: passwordDigest(user)
  })

t.test('the file decides at each look-up who its user is', t => {
  const users = createFileUsers()
  const session = { ...sessionOf('alice'), id: 'x', createdAt: 0, idleMs: 1 }
  t.equal(users.review(session), session, 'before a config is in force')
  const reviewed = (user: User | undefined) => {
    users.activate(filesOf(user === undefined ? {} : { alice: user }))
    return users.review(session)
  }
  t.same(reviewed(userOf()), session)
  const changed = userOf({ roles: ['admin'], name: 'Alice A.', profile: { team: 'x' } })
  t.match(reviewed(changed)?.identity, identityOf('alice', changed))
  t.equal(reviewed(undefined), undefined, 'removed')
  t.equal(reviewed(userOf({ disabled: true })), undefined)
  t.equal(reviewed(userOf({ password: 'another' })), undefined)
  t.equal(reviewed(userOf({ id: '7' })), undefined, 'somebody else of that name')
  t.same(reviewed(userOf()), session, 'nothing was written: it is back')
  const named = { ...session, identity: { ...session.identity, username: '__proto__' } }
  t.equal(users.review(named), undefined)
  t.equal(users.review({ ...session, source: 'gone' }), undefined)
  const hr = { kind: 'upstream-login', upstream: 'b' }
  users.activate(filesOf({}, { hr }))
  const atBackEnd = { ...session, source: 'hr' }
  t.equal(users.review(atBackEnd), atBackEnd, 'of a back-end the file says nothing')
  t.end()
})

t.test('more than half of a file’s users, and at least five, are a mass change', t => {
  const many = (count: number, more: Partial<User> = {}) =>
    filesOf(Object.fromEntries(Array.from({ length: count }, (_, n) => [`u${n}`, userOf(more)])))
  const words = 'of 10 users of source users-file vanish or change their password'
  t.equal(massChange(many(10), many(4)), `6 ${words}`)
  t.equal(massChange(many(10), many(10, { password: 'another' })), `10 ${words}`)
  t.equal(massChange(many(10), many(5)), undefined)
  t.equal(massChange(many(4), many(0)), undefined)
  t.equal(massChange(many(10), many(10, { disabled: true })), undefined, 'is meant')
  t.end()
})
