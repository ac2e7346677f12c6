import t from 'tap'
import { cookieOf, password, testGateway } from '../support/gateway.ts'

t.test('a right password opens a session and answers in the dual envelope', async t => {
  const gateway = await testGateway(t.after)
  const answer = await gateway.call('/api/auth/admin/login', { json: { username: 'alice', password, type: 'account', autoLogin: false } })
  t.equal(answer.status, 200)
  t.match(answer.json, { ok: true, code: 0, success: true, data: { authToken: '', status: 'ok' }, status: 'ok', type: 'account', currentAuthority: 'admin' })
  const profile = await gateway.call('/api/account/profile', { cookie: cookieOf(answer) })
  t.match(profile.json, { data: { username: 'alice', userid: '1' } })
})
