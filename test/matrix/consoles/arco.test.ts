import tap from 'tap'
import { arco } from './arco.ts'
import { type Fake, fakePage, firstPage, secondPage } from './fake.ts'
import { walk } from './walk.ts'

const success = (data: unknown) => ({
  json: { status: 'ok', msg: '请求成功', code: 20000, data }
})
const failure = (code: number, msg: string) => ({
  json: { status: 'fail', msg, code, data: null }
})
const whenSignedIn = (signedIn: boolean, data: unknown) =>
  signedIn ? success(data) : failure(50008, 'Signed out.')

/** arco-design-pro-vite/src/mock/user.ts and src/utils/setup-mock.ts at 2702081 */
const fake: Fake = {
  token: ['authorization', 'Bearer token'],
  routes: {
    'POST /api/user/login': ({ body }) =>
      body['password'] === 'right'
        ? success({ token: 'token' })
        : failure(50000, 'Wrong password.'),
    'POST /api/user/info': ({ signedIn }) => whenSignedIn(signedIn, { name: 'Ada', role: 'admin' }),
    'POST /api/user/menu': ({ signedIn }) => whenSignedIn(signedIn, [{ name: 'dashboard' }]),
    'POST /api/user/logout': () => success(null),
    'GET /api/list/policy': ({ signedIn, query }) =>
      whenSignedIn(signedIn, {
        list: query.get('current') === '2' ? secondPage : firstPage,
        total: 25
      }),
    'POST /api/list/policy': ({ body }) =>
      body['title'] === '' ? failure(50000, 'Title is missing.') : success(null)
  }
}

const right = { username: 'ada', password: 'right' }

void tap.test('arco works with what its own mock answers', t =>
  walk(t, arco, fakePage(fake), {
    wrongPassword: ['Wrong password.'],
    saveMessages: ['Title is missing.'],
    menu: ['dashboard'],
    permissions: [],
    afterEnd: ['GET /api/list/policy', 'POST /api/user/logout']
  })
)

void tap.test('arco takes no other code of success than the number 20000', async t => {
  for (const code of [0, 200, '20000', undefined]) {
    const page = fakePage(fake, {
      'POST /api/user/login': json => ({ json: { ...(json as object), code } })
    })
    t.match(await arco.open(page).signIn(right), { at: 'sign-in', content: undefined })
  }
})

void tap.test('arco shows the message of a body under status 2xx only', async t => {
  const page = fakePage(fake, { 'POST /api/user/login': json => ({ status: 403, json }) })
  t.match(await arco.open(page).signIn({ ...right, password: 'wrong' }), {
    at: 'sign-in',
    messages: ['Request Error']
  })
})

void tap.test('arco cannot go in with an empty token', async t => {
  const page = fakePage(fake, { 'POST /api/user/login': () => success({ token: '' }) })
  t.match(await arco.open(page).signIn(right), { at: 'sign-in', messages: [], content: undefined })
})

void tap.test('arco stays where it is when its sign-out is refused', async t => {
  const page = fakePage(fake, { 'POST /api/user/logout': () => failure(50008, 'Signed out.') })
  const console = arco.open(page)
  await console.signIn(right)
  page.endSession()
  page.requests.length = 0
  t.match(await console.list(1, 10), { at: 'inside' })
  t.strictSame(page.requests, ['GET /api/list/policy', 'POST /api/user/logout'])
})
