import tap from 'tap'
import { type Fake, fakePage, firstPage, secondPage } from './fake.ts'
import { walk } from './walk.ts'
import { yudao } from './yudao.ts'

const api = '/admin-api'
const success = (data: unknown) => ({ json: { code: 0, msg: '', data } })
const failure = (code: number, msg: string) => ({ json: { code, msg, data: null } })
const whenSignedIn = (signedIn: boolean, data: unknown) =>
  signedIn ? success(data) : failure(401, '账号未登录')
const tokens = { userId: 1, accessToken: 'token', refreshToken: 'refresh', expiresTime: 1 }

/** What the back-end of yudao answers (backends/yudao.ts). */
const fake: Fake = {
  token: ['authorization', 'Bearer token'],
  routes: {
    [`GET ${api}/system/tenant/get-id-by-name`]: () => success(1),
    [`POST ${api}/system/auth/login`]: ({ body, headers }) => {
      if (headers['tenant-id'] !== '1') return failure(400, '请求的租户标识未传递，请进行排查')
      return body['password'] === 'right'
        ? success(tokens)
        : failure(1_002_000_000, '登录失败，账号密码不正确')
    },
    [`GET ${api}/system/auth/get-permission-info`]: ({ signedIn }) =>
      whenSignedIn(signedIn, {
        user: { id: 1, nickname: 'Ada' },
        roles: ['admin'],
        permissions: ['system:notice:create'],
        menus: [{ name: '系统管理', path: '/system', visible: true }]
      }),
    [`GET ${api}/system/dict-data/simple-list`]: ({ signedIn }) => whenSignedIn(signedIn, []),
    [`POST ${api}/system/auth/refresh-token`]: () => failure(400, '无效的刷新令牌'),
    [`POST ${api}/system/auth/logout`]: () => success(true),
    [`GET ${api}/system/notice/page`]: ({ signedIn, query }) =>
      whenSignedIn(signedIn, {
        list: query.get('pageNo') === '2' ? secondPage : firstPage,
        total: 25
      }),
    [`POST ${api}/system/notice/create`]: ({ body }) =>
      body['title'] === '' ? failure(400, '请求参数不正确:公告标题不能为空') : success(1)
  }
}

const right = { username: 'ada', password: 'right' }

void tap.test('yudao works with what its own back-end answers', t =>
  walk(t, yudao, fakePage(fake), {
    wrongPassword: ['登录失败，账号密码不正确'],
    saveMessages: ['请求参数不正确:公告标题不能为空'],
    menu: ['系统管理'],
    permissions: ['system:notice:create'],
    afterEnd: [`GET ${api}/system/notice/page`, `POST ${api}/system/auth/refresh-token`]
  })
)

void tap.test('yudao takes the codes 0, 200 and none for success', async t => {
  for (const code of [0, 200, undefined, '0', 20000]) {
    const page = fakePage(fake, {
      [`POST ${api}/system/auth/login`]: json => ({ json: { ...(json as object), code } })
    })
    const { at } = await yudao.open(page).signIn(right)
    t.equal(at, code === '0' || code === 20000 ? 'sign-in' : 'inside', String(code))
  }
})

void tap.test('yudao shows the message of a body under status 2xx only', async t => {
  const page = fakePage(fake, {
    [`POST ${api}/system/auth/login`]: json => ({ status: 401, json })
  })
  t.match(await yudao.open(page).signIn(right), {
    at: 'sign-in',
    messages: ['请求出错，请稍候重试401']
  })
})

void tap.test('yudao renews its token at code 401 and repeats the request', async t => {
  let refused = 0
  const page = fakePage(fake, {
    [`POST ${api}/system/auth/refresh-token`]: () => success(tokens),
    [`GET ${api}/system/notice/page`]: json =>
      ++refused === 1 ? failure(401, '账号未登录') : { json }
  })
  const console = yudao.open(page)
  await console.signIn(right)
  page.requests.length = 0
  t.match(await console.list(2, 10), { content: { rows: secondPage }, messages: [] })
  t.strictSame(page.requests, [
    `GET ${api}/system/notice/page`,
    `POST ${api}/system/auth/refresh-token`,
    `GET ${api}/system/notice/page`
  ])
})

void tap.test('yudao lets nobody in without an access token', async t => {
  const page = fakePage(fake, { [`POST ${api}/system/auth/login`]: () => success({}) })
  t.match(await yudao.open(page).signIn(right), { at: 'sign-in', content: undefined })
})

void tap.test('yudao sends the captcha that the slider checked', async t => {
  const page = fakePage({
    ...fake,
    routes: {
      ...fake.routes,
      [`POST ${api}/system/captcha/get`]: () => ({
        json: { repCode: '0000', repData: { token: 'c1', secretKey: '' } }
      }),
      [`POST ${api}/system/captcha/check`]: ({ body }) => ({
        json: { repCode: body['pointJson'] === 'x5' ? '0000' : '6111' }
      }),
      [`POST ${api}/system/auth/login`]: ({ body }) =>
        body['captchaVerification'] === 'c1---x5' ? success(tokens) : failure(1, 'captcha')
    }
  })
  const console = yudao.open(page)
  t.match(await console.signIn({ ...right, captcha: 'x4' }), { messages: ['验证失败'] })
  t.match(await console.signIn({ ...right, captcha: 'x5' }), { at: 'inside' })
})
