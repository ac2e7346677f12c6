/**
 * Users of a users file before each back-end, which checks the token that the gateway signs.
 * Others: pairs.test.ts.
 */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testUsers } from '../support/users.ts'
import { backends } from './backend-families.ts'
import { type BackendName, service, users } from './backend.ts'

/** The call for the user, whose display name stands in its response. */
const userCalls: Readonly<Record<BackendName, string>> = {
  'ruoyi': '/getInfo',
  'jeecg': '/jeecg-boot/sys/user/getUserInfo',
  'yudao': '/admin-api/system/auth/get-permission-info',
  'gin-vue-admin': '/user/getUserInfo',
  'drf': '/api/users/me/',
  'strapi': '/api/users/me',
  'directus': '/users/me',
  'json-api': '/users/me'
}

const { alice } = testUsers
const people = { admin: { ...alice, id: '1' }, member: { ...alice, id: '2', roles: ['user'] } }

for (const family of backends) {
  t.test(`${family.name}: by jwt each user is known to the back-end`, async t => {
    const backend = await family.start(t.after)
    const credential = { as: family.credential, jwt: { secret: '${JWT_SECRET}' } }
    const route = (path: string, rewrite: string) => ({ path, rewrite, upstream: 'backend' })
    const files = {
      gateway: {
        backend: family.name,
        login: { sources: { backend: null, staff: { kind: 'users-file' } } }
      },
      routes: {
        upstreams: { backend: { url: backend.url, credential } },
        routes: {
          me: route('/api/me', userCalls[family.name]),
          list: route('/api/list', family.list.path)
        }
      },
      users: { users: people }
    }
    const gateway = await testGateway(t.after, files, { JWT_SECRET: service.jwtSecret })
    for (const { username, name } of Object.values(users)) {
      const cookie = await gateway.signIn(username)
      const me = await gateway.call('/api/me?fields=id,first_name', { cookie })
      t.equal(me.status, 200, me.text)
      t.match(me.text, name)
      const list = await gateway.call('/api/list', { cookie })
      t.equal(list.status, 200, list.text)
      t.match(list.text, 'Notice 1')
    }
  })
}
