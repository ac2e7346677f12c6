import t from 'tap'
import { authorityOf, fillCurrentUser } from '../../src/shaping/current-user.ts'
import type { Identity } from '../../src/session/record.ts'

const identity: Identity = {
  id: '7',
  username: 'alice',
  name: 'Alice Admin',
  roles: ['user', 'admin'],
  profile: {}
}

t.test(
  'a back-end that says nothing is filled from the session, so that no console waits for a name',
  async t => {
    const filled = {
      id: '7',
      userid: '7',
      username: 'alice',
      name: 'Alice Admin',
      avatar: '',
      access: 'admin',
      role: 'Admin'
    }
    for (const given of [{}, null, undefined, 'text', 5, [], [{ username: 'x' }]]) {
      t.same(fillCurrentUser(given, identity), filled, JSON.stringify(given))
    }
  }
)

t.test('what a back-end says stays, whatever it calls it', async t => {
  const given = {
    id: 12,
    userid: 'u12',
    username: 'bob',
    name: 'Bob',
    avatar: '/b.png',
    access: 'editor',
    role: 'Writer',
    email: 'b@example.com',
    tags: [{ key: '1' }],
    notifyCount: 3
  }
  t.same(fillCurrentUser(given, identity), given)
})

t.test('either family’s name of a thing is filled from the other’s', async t => {
  t.match(fillCurrentUser({ id: 12 }, identity), { id: 12, userid: '12' })
  t.match(fillCurrentUser({ userid: 'u1' }, identity), { id: 'u1', userid: 'u1' })
  t.match(fillCurrentUser({ role: 'Admin' }, identity), { role: 'Admin', access: 'admin' })
  t.match(fillCurrentUser({ access: 'admin' }, identity), { role: 'Admin', access: 'admin' })
  t.match(fillCurrentUser({ access: 'user' }, { ...identity, roles: ['admin'] }), {
    role: 'User',
    access: 'user'
  })
})

t.test('a word that is no plain role stays as it is in both', async t => {
  t.match(fillCurrentUser({ role: 'ORDER_READ' }, identity), {
    role: 'ORDER_READ',
    access: 'ORDER_READ'
  })
  t.match(fillCurrentUser({ access: 'orders:read' }, identity), {
    role: 'orders:read',
    access: 'orders:read'
  })
  t.match(fillCurrentUser({ role: '管理员' }, identity), { role: '管理员', access: '管理员' })
})

t.test('values that a console cannot use count as absent', async t => {
  for (const useless of [null, '', {}, [], true]) {
    t.match(
      fillCurrentUser(
        {
          id: useless,
          userid: useless,
          username: useless,
          name: useless,
          access: useless,
          role: useless
        },
        identity
      ),
      {
        id: '7',
        userid: '7',
        username: 'alice',
        name: 'Alice Admin',
        access: 'admin',
        role: 'Admin'
      },
      JSON.stringify(useless)
    )
  }
  for (const useless of [null, 5, {}]) {
    t.equal(fillCurrentUser({ avatar: useless }, identity)['avatar'], '')
  }
  t.equal(fillCurrentUser({ id: 0 }, identity)['userid'], '0')
})

t.test('what was given is not changed', async t => {
  const given = Object.freeze({ id: 1 })
  t.not(fillCurrentUser(given, identity), given)
  t.same(given, { id: 1 })
})

t.test(
  'the word for a console’s menus is admin where it is among the roles, else the first role, else user',
  async t => {
    const of = (...roles: string[]) => authorityOf({ ...identity, roles })
    t.equal(of('user', 'admin'), 'admin')
    t.equal(of('Admin'), 'admin')
    t.equal(of('ADMIN', 'x'), 'admin')
    t.equal(of('clerk', 'user'), 'clerk')
    t.equal(of(), 'user')
    t.equal(of('administrator'), 'administrator')
  }
)
