/** Dialects that are the console's alone: nothing that it did not ask for. */
import t from 'tap'
import { password, testGateway } from '../support/gateway.ts'
import { json as answer, testUpstream } from '../support/upstream.ts'

const json = { username: 'alice', password }
const members = { code: 'c', message: 'm', data: 'd', success: false }
const off = { errorCode: false, requestId: false }

t.test('case U7: a custom dialect starts from nothing', async t => {
  const custom = { members: { ...members, ...off } }
  const gateway = await testGateway(t.after, {
    gateway: { envelope: { dialect: 'custom', custom } }
  })
  const signedIn = await gateway.call('/api/auth/admin/login', { json })
  t.strictSame(signedIn.json, { c: 0, m: 'OK', d: {} })
  const cookie = await gateway.signIn()
  const { d: profile } = (await gateway.call('/api/account/profile', { cookie })).json
  const user = ['email', 'id', 'name', 'roles', 'username']
  t.strictSame(Object.keys(profile).toSorted(), user, 'as the users file has it')
  const refused = await gateway.call('/api/auth/admin/login', { json: { ...json, password: 'x' } })
  t.strictSame(Object.keys(refused.json), ['c', 'm'])
})

t.test(
  'case U7: without a dialect a success is its value, and an error says what it is',
  async t => {
    const gateway = await testGateway(t.after, { gateway: { envelope: { dialect: 'none' } } })
    const signedIn = await gateway.call('/api/auth/admin/login', { json })
    t.equal(signedIn.status, 200)
    t.strictSame(signedIn.json, {})
    const cookie = await gateway.signIn()
    const profile = await gateway.call('/api/account/profile', { cookie })
    t.strictSame(Object.keys(profile.json).toSorted(), ['email', 'id', 'name', 'roles', 'username'])
    const refused = await gateway.call('/api/account/profile')
    t.equal(refused.status, 401)
    t.match(refused.headers.get('content-type'), /^application\/json/)
    t.match(refused.json, { code: 'session.none', message: 'Please sign in.', requestId: String })
    t.strictSame(Object.keys(refused.json).toSorted(), ['code', 'message', 'requestId'])
  }
)

t.test('case U7: a profile of a back-end is as the back-end says', async t => {
  const user = { uid: 7, nick: 'al' }
  const backend = await testUpstream(t.after, answer(200, user))
  for (const envelope of [{ dialect: 'none' }, { dialect: 'problem' }]) {
    const gateway = await testGateway(t.after, {
      gateway: { envelope },
      routes: {
        upstreams: { b: { url: backend.url } },
        endpoints: { profile: { upstream: 'b' } }
      }
    })
    const { json: profile } = await gateway.call('/api/account/profile', {
      cookie: await gateway.signIn()
    })
    t.strictSame(profile, user, envelope.dialect)
  }
})
