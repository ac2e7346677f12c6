/** The language of the gateway's own messages. */
import t from 'tap'
import { password, testGateway } from '../support/gateway.ts'

const session = { en: 'Please sign in.', zh: '请先登录。' }
const refused = { en: 'The user name or the password is wrong.', zh: '用户名或密码错误。' }
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
  t.equal(await said('zh-CN', '/api/auth/admin/login', wrong), refused.zh)
})

t.test('case C3: a sign-in that is refused with 200, too, and what config says wins', async t => {
  const headers = { 'accept-language': 'zh-CN' }
  const login = '/api/auth/admin/login'
  const speaking = async (envelope: object) => await testGateway(t.after, { gateway: { envelope } })
  const ok = await speaking({ errorStatus: 'ok' })
  const inChinese = { status: 200, json: { message: refused.zh } }
  t.match(await ok.call(login, { ...wrong, headers }), inChinese)
  const [fixed, chinese] = [await speaking({ language: 'en' }), await speaking({ language: 'zh' })]
  t.equal((await fixed.call('/api/session', { headers })).json.message, session.en)
  t.equal((await chinese.call('/api/session')).json.message, session.zh)
  const own = await speaking({ language: 'zh', messages: { 'session.none': '请到登录页' } })
  t.equal((await own.call('/api/session')).json.message, '请到登录页')
  t.equal((await own.call(login, wrong)).json.message, refused.zh)
})
