import tap from 'tap'
import { type Fake, fakePage, firstPage, secondPage } from './fake.ts'
import { ruoyi } from './ruoyi.ts'
import { walk } from './walk.ts'

const api = '/prod-api'
const ajax = (members: object) => ({ json: { msg: '操作成功', code: 200, ...members } })
const failure = (code: number, msg: string) => ({ json: { msg, code } })
const whenSignedIn = (signedIn: boolean, members: object) =>
  signedIn ? ajax(members) : failure(401, '认证失败')

/** What the back-end of RuoYi-Vue answers (backends/ruoyi.ts). */
const fake: Fake = {
  token: ['authorization', 'Bearer token'],
  routes: {
    [`GET ${api}/captchaImage`]: () => ajax({ captchaEnabled: false }),
    [`POST ${api}/login`]: ({ body }) =>
      body['password'] === 'right' ? ajax({ token: 'token' }) : failure(500, '用户不存在/密码错误'),
    [`GET ${api}/getInfo`]: ({ signedIn }) =>
      whenSignedIn(signedIn, {
        user: { userId: 1, userName: 'ada', nickName: 'Ada' },
        roles: ['admin'],
        permissions: ['*:*:*']
      }),
    [`GET ${api}/getRouters`]: ({ signedIn }) =>
      whenSignedIn(signedIn, {
        data: [{ path: '/system', component: 'Layout', meta: { title: '系统管理' } }]
      }),
    [`GET ${api}/system/notice/listTop`]: ({ signedIn }) =>
      whenSignedIn(signedIn, { data: [], unreadCount: 0 }),
    [`POST ${api}/logout`]: () => ajax({}),
    [`GET ${api}/system/notice/list`]: ({ signedIn, query }) =>
      whenSignedIn(signedIn, {
        rows: query.get('pageNum') === '2' ? secondPage : firstPage,
        total: 25
      }),
    [`POST ${api}/system/notice`]: ({ body }) =>
      body['title'] === '' ? failure(500, '公告标题不能为空') : ajax({})
  }
}

const right = { username: 'ada', password: 'right' }

void tap.test('ruoyi works with what its own back-end answers', t =>
  walk(t, ruoyi, fakePage(fake), {
    wrongPassword: ['用户不存在/密码错误'],
    saveMessages: ['公告标题不能为空'],
    menu: ['系统管理'],
    permissions: ['*:*:*'],
    afterEnd: [`GET ${api}/system/notice/list`, `POST ${api}/logout`]
  })
)

void tap.test('ruoyi takes no other code of success than 200, or none', async t => {
  for (const code of [0, 200, undefined, 1, '200']) {
    const page = fakePage(fake, {
      [`POST ${api}/login`]: json => ({ json: { ...(json as object), code } })
    })
    const { at } = await ruoyi.open(page).signIn(right)
    t.equal(at, code === 1 || code === '200' ? 'sign-in' : 'inside', String(code))
  }
})

void tap.test('ruoyi shows the message of a body under status 2xx only', async t => {
  const page = fakePage(fake, { [`POST ${api}/login`]: json => ({ status: 403, json }) })
  t.match(await ruoyi.open(page).signIn(right), { at: 'sign-in', messages: ['系统接口403异常'] })
})

void tap.test('ruoyi reads the user at the top of the body', async t => {
  const page = fakePage(fake, {
    [`GET ${api}/getInfo`]: json => ({ json: { code: 200, data: json } })
  })
  t.match(await ruoyi.open(page).signIn(right), { at: 'sign-in', content: undefined })
})

void tap.test('ruoyi asks for a captcha unless the back-end switches it off', async t => {
  const page = fakePage(fake, {
    [`GET ${api}/captchaImage`]: () => ajax({ img: 'R0lG', uuid: 'u1' }),
    [`POST ${api}/login`]: () => failure(500, '验证码错误')
  })
  const console = ruoyi.open(page)
  t.match(await console.signIn(right), { content: undefined, messages: [] })
  t.match(await console.signIn({ ...right, captcha: '7' }), { messages: ['验证码错误'] })
  t.equal(page.requests.filter(name => name === `POST ${api}/login`).length, 1)
})

void tap.test('ruoyi cannot leave when its sign-out is refused', async t => {
  const page = fakePage(fake, { [`POST ${api}/logout`]: () => failure(500, 'Later.') })
  const console = ruoyi.open(page)
  await console.signIn(right)
  t.match(await console.signOut(), { at: 'inside', messages: ['Later.'] })
})
