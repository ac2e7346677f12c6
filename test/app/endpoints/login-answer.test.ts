import t from 'tap'
import { cookieOf, password, testGateway } from '../../support/gateway.ts'
import { signInAt } from '../../support/sign-in.ts'
import { json as answerJson, testUpstream } from '../../support/upstream.ts'
import { until } from '../../support/until.ts'

const path = '/api/auth/admin/login'
const right = { username: 'alice', password }

t.test('sign-in answers as `endpoints.login.answer` says, in the envelope', async t => {
  const gateway = await testGateway(t.after, {
    routes: {
      permissions: { admin: ['*:*:*'], user: ['me'] },
      endpoints: {
        login: {
          answer: {
            json: {
              accessToken: '{token}',
              user: { id: '{id}', roles: '{roles}', mail: '{profile.email}' },
              codes: '{permissions}',
              homePath: '/analytics',
              expires: '{absoluteEndsAt}'
            }
          }
        }
      }
    }
  })
  const answer = await gateway.call(path, { json: right })
  t.equal(answer.status, 200)
  t.match(answer.headers.get('content-type'), /^application\/json/)
  const { expires, ...data } = answer.json.data
  t.same(data, {
    accessToken: '',
    user: { id: '1', roles: ['admin', 'user'], mail: 'alice@example.com' },
    codes: ['*:*:*', 'me'],
    homePath: '/analytics'
  })
  t.ok(expires > Date.now())
  t.match(answer.json, { ok: true, code: 0, status: undefined, currentAuthority: undefined })
  const session = await gateway.call('/api/session', { cookie: cookieOf(answer) })
  t.equal(session.status, 200)
})

t.test('the value may stand beside the code, or be the whole body', async t => {
  const bodyWith = async (answer: object) => {
    const gateway = await testGateway(t.after, { routes: { endpoints: { login: { answer } } } })
    const { status, text } = await gateway.call(path, { json: right })
    return `${status} ${text}`
  }
  t.equal(
    await bodyWith({ json: { code: 'mine', token: 't' }, inEnvelope: 'flat' }),
    '200 {"ok":true,"code":0,"message":"OK","success":true,"token":"t"}'
  )
  t.equal(await bodyWith({ json: '{username}', inEnvelope: 'none' }), '200 "alice"')
  t.equal(
    await bodyWith({ json: 'x', byRole: { user: 'u', admin: 'a' }, inEnvelope: 'none' }),
    '200 "u"'
  )
  t.equal(await bodyWith({ inEnvelope: 'none' }), '200 null')
})

const token = 'back-end-token'
const secrets = { 'token': token, 'refresh token': 'back-end-refresh' }

for (const [what, secret] of [
  ...Object.entries(secrets),
  ['cookie pair', 'sid=s%3A42'],
  ['cookie', 's%3A42']
] as const) {
  t.test(
    `an answer with the back-end’s ${what} fails the sign-in, and opens no session`,
    async t => {
      const backend = await testUpstream(t.after, (request, response) => {
        response.setHeader('set-cookie', 'sid=s%3A42; Path=/')
        const user = { id: 7, more: { deep: [{ hidden: secret }] } }
        answerJson(200, { ...secrets, token, refresh: secrets['refresh token'], user })(
          request,
          response,
          undefined as never
        )
      })
      const gateway = await testGateway(t.after, {
        gateway: {
          login: {
            sources: {
              b: {
                kind: 'upstream-login',
                upstream: 'b',
                path: '/login',
                user: { id: 'user.id', profile: 'user.more' },
                token: 'token',
                refreshToken: 'refresh',
                cookies: ['sid'],
                logout: { path: '/bye' }
              }
            }
          }
        },
        routes: {
          upstreams: { b: { url: backend.url, credential: 'bearer' } },
          endpoints: { login: { answer: { json: { id: '{id}', extra: '{profile.deep}' } } } }
        }
      })
      const answer = await gateway.call(path, { json: right })
      t.match(answer, { status: 502, json: { errorCode: 'upstream.invalid' } })
      t.same(answer.headers.getSetCookie(), [])
      t.notMatch(answer.text, secret)
      t.notMatch(JSON.stringify(gateway.log), secret)
      const listed = await gateway.ops('/ops/api/sessions')
      t.match(await listed.json(), { sessions: [] }, 'the store has none')
      t.notOk(gateway.log.some(({ event }) => event === 'login'))
      await until('the back-end’s session was ended', () =>
        backend.seen.some(({ url }) => url === '/bye')
      )
      const [former] = [await gateway.call('/api/session')]
      t.equal(former.status, 401)
    }
  )
}

t.test(
  'case R8: a session that may not be opened ends at its back-end, and the former one nowhere',
  async t => {
    let signIns = 0
    const backend = await testUpstream(t.after, (request, response, seen) => {
      const { username } = seen.url === '/login' ? JSON.parse(String(seen.body)) : { username: '' }
      if (seen.url === '/login') signIns++
      return answerJson(200, { token: `${token}-${username}${signIns}`, id: username })(
        request,
        response,
        seen
      )
    })
    const { gateway: login, routes } = signInAt(backend.url, {
      token: 'token',
      logout: { path: '/bye' }
    })
    const gateway = await testGateway(t.after, {
      gateway: { ...login, session: { perUser: { max: 1, over: 'refuse' } } },
      routes
    })
    await gateway.signIn('dave')
    const cookie = await gateway.signIn('carol')
    const refused = await gateway.call(path, { json: { username: 'dave', password }, cookie })
    t.match(refused, { status: 409, json: { errorCode: 'login.too-many' } })
    t.equal((await gateway.call('/api/session', { cookie })).status, 200)
    const ended = () => backend.seen.filter(({ url }) => url === '/bye')
    await until('it was ended', () => ended().length > 0)
    t.same(
      ended().map(({ headers }) => headers.authorization),
      [`Bearer ${token}-dave3`]
    )
  }
)
