/** Users of a users file before each back-end, which knows them by a token that it gives, or checks. */
import t from 'tap'
import { testGateway } from '../support/gateway.ts'
import { testUsers } from '../support/users.ts'
import { backends } from './backend-families.ts'
import { type BackendName, service, users } from './backend.ts'

interface Called {
  /** The call for the user, whose display name stands in its response. */
  readonly user: string
  /** As in the preset of the family. Default: bearer. */
  readonly as?: string
  readonly query?: string
}

const calls: Readonly<Record<BackendName, Called>> = {
  'ruoyi': { user: '/getInfo' },
  'jeecg': { user: '/jeecg-boot/sys/user/getUserInfo', as: 'header:x-access-token' },
  'yudao': { user: '/admin-api/system/auth/get-permission-info' },
  'gin-vue-admin': { user: '/user/getUserInfo', as: 'header:x-token' },
  'drf': { user: '/api/users/me/' },
  'strapi': { user: '/api/users/me' },
  'directus': { user: '/users/me', query: '?fields=id,first_name' },
  'json-api': { user: '/users/me' }
}

const ways = {
  exchange: {
    path: '/service/token',
    headers: { 'x-service-key': service.key },
    token: 'token'
  },
  jwt: { secret: '${JWT_SECRET}' }
}

const { alice } = testUsers
const people = { admin: { ...alice, id: '1' }, member: { ...alice, id: '2', roles: ['user'] } }

for (const family of backends) {
  for (const [way, settings] of Object.entries(ways)) {
    t.test(`${family.name}: by ${way} each user is known to the back-end`, async t => {
      const backend = await family.start(t.after)
      const { user, as, query = '' } = calls[family.name]
      const credential = { ...(as !== undefined && { as }), [way]: settings }
      const route = (path: string, rewrite: string) => ({ path, rewrite, upstream: 'backend' })
      const files = {
        gateway: {
          backend: family.name,
          login: { sources: { backend: null, staff: { kind: 'users-file' } } }
        },
        routes: {
          upstreams: { backend: { url: backend.url, credential } },
          routes: { me: route('/api/me', user), list: route('/api/list', family.list.path) }
        },
        users: { users: people }
      }
      const gateway = await testGateway(t.after, files, { JWT_SECRET: service.jwtSecret })
      for (const { username, name } of Object.values(users)) {
        const cookie = await gateway.signIn(username)
        const me = await gateway.call(`/api/me${query}`, { cookie })
        t.equal(me.status, 200, me.text)
        t.match(me.text, name)
        const list = await gateway.call('/api/list', { cookie })
        t.equal(list.status, 200, list.text)
        t.match(list.text, 'Notice 1')
      }
    })
  }
}
