/** The language of the gateway's own messages. */
import t from 'tap'
import { password, testGateway } from '../support/gateway.ts'
import { loginPath } from '../support/wire.ts'

const session = { en: 'Please sign in.', zh: '请先登录。' }
const refused = { en: 'The user name or the password is wrong.', zh: '用户名或密码错误。' }
const own = '请到登录页'
const wrong = { json: { username: 'alice', password: `not-${password}` } }

t.test('case C3: the gateway speaks the language of the browser', async t => {
  const gateway = await testGateway(t.after, {})
  const said = async (language?: string, path = '/api/session', more: object = {}) => {
    const headers = language === undefined ? {} : { 'accept-language': language }
    return (await gateway.call(path, { headers, ...more })).json.message
  }
  for (const language of ['zh-CN,zh;q=0.9,en;q=0.8', 'zh', ' ZH-tw']) {
    t.equal(await said(language), session.zh, language)
  }
  for (const language of ['en-US,en;q=0.9,zh;q=0.8', 'fr, zh', 'zhuang', '*', '', undefined]) {
    t.equal(await said(language), session.en, String(language))
  }
  t.equal(await said('zh-CN', loginPath, wrong), refused.zh)
})

for (const [envelope, language, none, no, status] of [
  [{ errorStatus: 'ok' }, 'zh-CN', session.zh, refused.zh, 200],
  [{ language: 'en' }, 'zh-CN', session.en, refused.en, 401],
  [{ language: 'zh', messages: { 'session.none': own } }, 'en', own, refused.zh, 401]
] as const) {
  t.test(`case C3: what config says wins: ${Object.keys(envelope).join()}`, async t => {
    const { call } = await testGateway(t.after, { gateway: { envelope } })
    const headers = { 'accept-language': language }
    t.equal((await call('/api/session', { headers })).json.message, none)
    const answer = await call(loginPath, { ...wrong, headers })
    t.match(answer, { status, json: { message: no } })
  })
}
