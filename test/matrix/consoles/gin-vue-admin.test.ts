import tap from 'tap'
import { type Fake, fakePage, firstPage, secondPage } from './fake.ts'
import { ginVueAdmin } from './gin-vue-admin.ts'
import { walk } from './walk.ts'

const api = '/api'
const success = (data: unknown) => ({ json: { code: 0, data, msg: '成功' } })
const failure = (msg: string) => ({ json: { code: 7, data: {}, msg } })
const whenSignedIn = (signedIn: boolean, data: unknown) =>
  signedIn ? success(data) : { status: 401, json: { code: 7, data: null, msg: '登录已过期' } }

const user = {
  ID: 1,
  nickName: 'Ada',
  authority: { authorityName: 'admin', defaultRouter: 'dashboard' }
}

/** What the back-end of gin-vue-admin answers (backends/gin-vue-admin.ts). */
const fake: Fake = {
  token: ['x-token', 'token'],
  routes: {
    [`POST ${api}/base/captcha`]: () => success({ openCaptcha: false, captchaLength: 6 }),
    [`POST ${api}/base/login`]: ({ body }) =>
      body['password'] === 'right-one'
        ? success({ user, token: 'token', needChangePassword: false })
        : failure('用户名不存在或者密码错误'),
    [`GET ${api}/user/getUserInfo`]: ({ signedIn }) => whenSignedIn(signedIn, { userInfo: user }),
    [`POST ${api}/menu/getMenu`]: ({ signedIn }) =>
      whenSignedIn(signedIn, { menus: [{ name: 'dashboard', meta: { title: '仪表盘' } }] }),
    [`POST ${api}/jwt/jsonInBlacklist`]: ({ signedIn }) => whenSignedIn(signedIn, {}),
    [`GET ${api}/info/getInfoList`]: ({ signedIn, query }) =>
      whenSignedIn(signedIn, {
        list: query.get('page') === '2' ? secondPage : firstPage,
        total: 25,
        page: Number(query.get('page')),
        pageSize: Number(query.get('pageSize'))
      }),
    [`POST ${api}/info/createInfo`]: ({ body }) =>
      body['title'] === '' ? failure('Title值不能为空') : success({})
  }
}

const right = { username: 'ada-l', password: 'right-one' }

void tap.test('gin-vue-admin works with what its own back-end answers', t =>
  walk(t, ginVueAdmin, fakePage(fake), {
    credentials: right,
    wrongPassword: ['用户名不存在或者密码错误'],
    saveMessages: ['Title值不能为空'],
    menu: ['仪表盘'],
    permissions: [],
    afterEnd: [`GET ${api}/info/getInfoList`]
  })
)

void tap.test('gin-vue-admin takes no other code of success than the number 0', async t => {
  for (const code of [200, '0', 20000, undefined]) {
    const page = fakePage(fake, {
      [`POST ${api}/base/login`]: json => ({ json: { ...(json as object), code } })
    })
    t.match(await ginVueAdmin.open(page).signIn(right), { at: 'sign-in', content: undefined })
  }
})

void tap.test('gin-vue-admin lets nobody in without the route of the user’s home', async t => {
  const page = fakePage(fake, { [`POST ${api}/menu/getMenu`]: () => success({ menus: [] }) })
  t.match(await ginVueAdmin.open(page).signIn(right), {
    at: 'sign-in',
    messages: ['不存在可以登陆的首页，请联系管理员进行配置']
  })
})

void tap.test('gin-vue-admin loses its place in a list that does not say its page', async t => {
  const page = fakePage(fake, {
    [`GET ${api}/info/getInfoList`]: () => success({ list: firstPage, total: 25 })
  })
  const console = ginVueAdmin.open(page)
  await console.signIn(right)
  t.match(await console.list(2, 10), { at: 'inside', content: undefined })
})

void tap.test('gin-vue-admin asks for the captcha that the back-end opens', async t => {
  const page = fakePage(fake, {
    [`POST ${api}/base/captcha`]: () =>
      success({ openCaptcha: true, captchaLength: 6, captchaId: 'c1' }),
    [`POST ${api}/base/login`]: () => failure('验证码错误')
  })
  const console = ginVueAdmin.open(page)
  t.match(await console.signIn({ ...right, captcha: '123' }), { content: undefined, messages: [] })
  t.match(await console.signIn({ ...right, captcha: '123456' }), { messages: ['验证码错误'] })
})

void tap.test('gin-vue-admin stays where it is when its sign-out is refused', async t => {
  const page = fakePage(fake, { [`POST ${api}/jwt/jsonInBlacklist`]: () => failure('Later.') })
  const console = ginVueAdmin.open(page)
  await console.signIn(right)
  t.match(await console.signOut(), { at: 'inside', messages: ['Later.'] })
})
