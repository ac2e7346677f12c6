import tap from 'tap'
import { type Fake, type FakePage, fakePage, firstPage, secondPage } from './fake.ts'
import { vuePureAdmin } from './vue-pure-admin.ts'
import { walk } from './walk.ts'

const hour = 3_600_000
const success = (data: unknown) => ({ json: { code: 0, message: '操作成功', data } })
const failure = (message: string, extra = {}) => ({
  json: { code: 10001, message, data: {}, ...extra }
})
const whenSignedIn = (signedIn: boolean, data: unknown) =>
  signedIn ? success(data) : failure('Signed out.')

/** mock/login.ts, refreshToken.ts, asyncRoutes.ts and system.ts at 2ad835b */
function fakeAt(now: () => number, refreshes = () => false): Fake {
  const tokens = () => ({
    accessToken: 'token',
    refreshToken: 'refresh',
    expires: now() + hour
  })
  return {
    token: ['authorization', 'Bearer token'],
    routes: {
      'POST /login': ({ body }) =>
        body['password'] === 'right'
          ? success({
              ...tokens(),
              username: 'ada',
              nickname: 'Ada',
              roles: ['admin'],
              permissions: ['*:*:*']
            })
          : failure('Wrong password.'),
      'POST /refresh-token': () => (refreshes() ? success(tokens()) : failure('Signed out.')),
      'GET /get-async-routes': ({ signedIn }) => whenSignedIn(signedIn, [{ path: '/system' }]),
      'GET /user': ({ signedIn, query }) =>
        whenSignedIn(signedIn, {
          list: query.get('currentPage') === '2' ? secondPage : firstPage,
          total: 25,
          currentPage: Number(query.get('currentPage')),
          pageSize: 10
        }),
      'POST /user/add': ({ body }) =>
        body['title'] === ''
          ? failure('Not saved.', { fieldErrors: { title: 'Title is missing.' } })
          : success(null)
    }
  }
}

const start = Date.UTC(2026, 0, 1)
const right = { username: 'ada', password: 'right' }

void tap.test('vue-pure-admin works with what its own mock answers', t => {
  const page: FakePage = fakePage(fakeAt(() => page.now()))
  return walk(t, vuePureAdmin, page, {
    wrongPassword: ['登录失败'],
    saveMessages: ['Not saved.'],
    fieldErrors: { title: 'Title is missing.' },
    menu: ['/system'],
    permissions: ['*:*:*'],
    beforeEnd: () => page.pass(hour),
    afterEnd: ['POST /refresh-token']
  })
})

void tap.test('vue-pure-admin notices the end of a session by its own clock only', async t => {
  const page = fakePage(fakeAt(() => start))
  const console = vuePureAdmin.open(page)
  await console.signIn(right)
  page.endSession()
  t.match(await console.list(1, 10), { at: 'inside', messages: [], content: undefined })
  page.pass(hour)
  t.match(await console.list(1, 10), { at: 'sign-in', messages: ['登录已过期，请重新登录'] })
})

void tap.test('vue-pure-admin renews its token when it has expired', async t => {
  const page: FakePage = fakePage(
    fakeAt(
      () => page.now(),
      () => true
    )
  )
  const console = vuePureAdmin.open(page)
  await console.signIn(right)
  page.pass(hour)
  page.requests.length = 0
  t.match(await console.list(2, 10), { content: { rows: secondPage } })
  t.match(await console.list(1, 10), { content: { rows: firstPage } })
  t.strictSame(page.requests, ['POST /refresh-token', 'GET /user', 'GET /user'])
})

void tap.test('with a time that has passed vue-pure-admin cannot load its first page', async t => {
  const page = fakePage(fakeAt(() => start - 2 * hour))
  t.match(await vuePureAdmin.open(page).signIn(right), { at: 'sign-in' })
})

void tap.test('vue-pure-admin takes no other code of success than the number 0', async t => {
  for (const code of [200, '0', 20000, undefined]) {
    const page = fakePage(
      fakeAt(() => start),
      { 'POST /login': json => ({ json: { ...(json as object), code } }) }
    )
    t.match(await vuePureAdmin.open(page).signIn(right), { at: 'sign-in', messages: ['登录失败'] })
  }
})

void tap.test(
  'without a name and roles in the sign-in, vue-pure-admin shows the user before',
  async t => {
    const fake = fakeAt(() => start)
    const page = fakePage(fake, {
      'POST /login': () => success({ accessToken: 'token', expires: start + hour })
    })
    t.match(await vuePureAdmin.open(page).signIn(right), { content: { name: '', roles: [] } })
  }
)
