import tap from 'tap'
import { type Fake, fakePage, firstPage, secondPage } from './fake.ts'
import { tdesign } from './tdesign.ts'
import { walk } from './walk.ts'

const success = (data: unknown) => ({ json: { code: 0, data } })
const failure = (code: number) => ({ json: { code, message: 'Words that nobody sees.' } })
const whenSignedIn = (signedIn: boolean, data: unknown) => (signedIn ? success(data) : failure(401))

/** mock/index.ts at 0e13d9e, and the two calls that stand for its mocks */
const fake: Fake = {
  token: ['authorization', 'token'],
  routes: {
    'POST /api/login': ({ body }) =>
      body['password'] === 'right' ? success({ token: 'token' }) : failure(403),
    'GET /api/user-info': ({ signedIn }) =>
      whenSignedIn(signedIn, { name: 'Ada', roles: ['admin'] }),
    'GET /api/get-menu-list-i18n': ({ signedIn }) =>
      whenSignedIn(signedIn, { list: [{ path: '/list' }] }),
    'GET /api/get-list': ({ signedIn, query }) =>
      whenSignedIn(signedIn, {
        list: query.get('current') === '2' ? secondPage : firstPage,
        total: 25
      }),
    'POST /api/save': ({ body }) => (body['title'] === '' ? failure(400) : success(null))
  }
}

const right = { username: 'ada', password: 'right' }

void tap.test('tdesign works with what its own mock answers', t =>
  walk(t, tdesign, fakePage(fake), {
    wrongPassword: ['请求接口错误, 错误码: 403'],
    saveMessages: ['请求接口错误, 错误码: 400'],
    menu: ['/list'],
    permissions: [],
    afterEnd: ['GET /api/user-info']
  })
)

void tap.test('tdesign takes no other code of success than the number 0', async t => {
  for (const code of [200, '0', 20000, undefined]) {
    const page = fakePage(fake, {
      'GET /api/user-info': json => ({ json: { ...(json as object), code } })
    })
    t.match(await tdesign.open(page).signIn(right), { at: 'sign-in', content: undefined })
  }
})

void tap.test('tdesign sends a refused sign-in four times where the status says so', async t => {
  const page = fakePage(fake, { 'POST /api/login': json => ({ status: 403, json }) })
  await tdesign.open(page).signIn({ ...right, password: 'wrong' })
  t.strictSame(
    page.requests,
    Array.from({ length: 4 }, () => 'POST /api/login')
  )
})

void tap.test('tdesign goes to the sign-in page when its menu cannot be had', async t => {
  const page = fakePage(fake, { 'GET /api/get-menu-list-i18n': () => success([]) })
  t.match(await tdesign.open(page).signIn(right), {
    at: 'sign-in',
    messages: ["Can't build routes"]
  })
})
