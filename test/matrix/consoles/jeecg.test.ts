import tap from 'tap'
import { type Fake, fakePage, type FakeRequest, firstPage, secondPage } from './fake.ts'
import { jeecg } from './jeecg.ts'
import { walk } from './walk.ts'

const api = '/jeecgboot'
const success = (result: unknown, message = '') => ({
  json: { success: true, message, code: 200, result }
})
const failure = (message: string, code = 500) => ({
  json: { success: false, message, code, result: null }
})
const whenSignedIn = (signedIn: boolean, result: unknown) =>
  signedIn ? success(result) : { ...failure('Token失效，请重新登录!', 401), status: 401 }

const user = { realname: 'Ada', loginTenantId: 0, roles: [{ value: 'admin' }] }
/** `right` in AES with the console's key. */
const encrypted = 'ntJswCT8NiQdtwB9r/QXFA=='

/** What the back-end of JeecgBoot answers (backends/jeecg.ts). */
const fake: Fake = {
  token: ['x-access-token', 'token'],
  routes: {
    [`GET ${api}/sys/randomImage/1767225600000a1b2`]: () => success('data:image/jpg;base64,'),
    [`POST ${api}/sys/login`]: ({ body }: FakeRequest) =>
      body['password'] === encrypted
        ? success({ token: 'token', userInfo: user })
        : failure('用户名或密码错误'),
    [`GET ${api}/sys/user/getUserInfo`]: ({ signedIn }) =>
      whenSignedIn(signedIn, { userInfo: user }),
    [`GET ${api}/sys/permission/getUserPermissionByToken`]: ({ signedIn }) =>
      whenSignedIn(signedIn, {
        menu: [{ path: '/isystem', component: 'layouts/RouteView', meta: { title: '系统管理' } }],
        codeList: ['system:sysAnnouncement:add'],
        auth: [],
        allAuth: []
      }),
    [`GET ${api}/sys/logout`]: () => success(''),
    [`GET ${api}/sys/annountCement/list`]: ({ signedIn, query }) =>
      whenSignedIn(signedIn, {
        records: query.get('pageNo') === '2' ? secondPage : firstPage,
        total: 25
      }),
    [`POST ${api}/sys/annountCement/add`]: ({ body }) =>
      body['title'] === '' ? failure('校验失败！标题不能为空') : success(null)
  }
}

const right = { username: 'ada', password: 'right' }

void tap.test('jeecg works with what its own back-end answers', t =>
  walk(t, jeecg, fakePage(fake), {
    wrongPassword: ['用户名或密码错误'],
    saveMessages: ['校验失败！标题不能为空'],
    menu: ['系统管理'],
    permissions: ['system:sysAnnouncement:add'],
    afterEnd: [`GET ${api}/sys/annountCement/list`]
  })
)

void tap.test('jeecg takes the numbers 0 and 200 for success, nothing else', async t => {
  for (const code of [0, 200, '0', 20000, undefined]) {
    const page = fakePage(fake, {
      [`POST ${api}/sys/login`]: json => ({ json: { ...(json as object), code } })
    })
    const { at } = await jeecg.open(page).signIn(right)
    t.equal(at, code === 0 || code === 200 ? 'inside' : 'sign-in', String(code))
  }
})

void tap.test('jeecg shows every message that stands beside success', async t => {
  const page = fakePage(fake, {
    [`GET ${api}/sys/annountCement/list`]: json => ({
      json: { ...(json as object), message: 'OK' }
    })
  })
  const console = jeecg.open(page)
  await console.signIn(right)
  t.match(await console.list(1, 10), { messages: ['OK'], content: { rows: firstPage } })
})

void tap.test('jeecg leaves at code 401 under status 200 too', async t => {
  const page = fakePage(fake, {
    [`GET ${api}/sys/annountCement/list`]: () => failure('Token失效，请重新登录!', 401)
  })
  const console = jeecg.open(page)
  await console.signIn(right)
  t.match(await console.list(1, 10), { at: 'sign-in', messages: ['登录超时,请重新登录!'] })
})

void tap.test('jeecg lets nobody in without a user beside the token', async t => {
  const page = fakePage(fake, {
    [`POST ${api}/sys/login`]: () => success({ token: 'token' })
  })
  t.match(await jeecg.open(page).signIn(right), { at: 'sign-in', content: undefined })
})

void tap.test('jeecg signs the parameters of a request, without the time', async t => {
  const signs: (string | undefined)[] = []
  const page = fakePage(fake)
  const { fetch } = page
  const console = jeecg.open({
    ...page,
    fetch: (path, init) => {
      if (path.includes('/list')) signs.push(init?.headers?.['X-Sign'])
      return fetch(path, init)
    }
  })
  await console.signIn(right)
  await console.list(1, 10)
  page.pass(1000)
  await console.list(1, 10)
  await console.list(2, 10)
  t.match(signs[0], /^[0-9A-F]{32}$/)
  t.equal(signs[1], signs[0])
  t.not(signs[2], signs[0])
})
