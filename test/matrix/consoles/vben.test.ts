import tap from 'tap'
import { type Fake, fakePage, firstPage, secondPage } from './fake.ts'
import { vben, vbenRefreshing } from './vben.ts'
import { walk } from './walk.ts'

const success = (data: unknown) => ({ json: { code: 0, data, error: null, message: 'ok' } })
const failure = (status: number, message: string, extra = {}) => ({
  status,
  json: { code: -1, data: null, error: message, message, ...extra }
})
const whenSignedIn = (signedIn: boolean, data: unknown) =>
  signedIn ? success(data) : failure(401, 'Unauthorized Exception')

/** apps/backend-mock at e3369bd */
const fake: Fake = {
  token: ['authorization', 'Bearer token'],
  routes: {
    'POST /api/auth/login': ({ body }) =>
      body['password'] === 'right'
        ? success({ accessToken: 'token' })
        : failure(403, 'Username or password is incorrect.'),
    'GET /api/user/info': ({ signedIn }) =>
      whenSignedIn(signedIn, { realName: 'Ada', roles: ['admin'], homePath: '/workspace' }),
    'GET /api/auth/codes': ({ signedIn }) => whenSignedIn(signedIn, ['AC_100']),
    'GET /api/menu/all': ({ signedIn }) => whenSignedIn(signedIn, [{ meta: { title: 'Start' } }]),
    'GET /api/table/list': ({ signedIn, query }) =>
      whenSignedIn(signedIn, {
        items: query.get('page') === '2' ? secondPage : firstPage,
        total: 25
      }),
    'POST /api/system/dept': ({ signedIn, body }) =>
      body['title'] === ''
        ? failure(400, 'Not saved.', { fieldErrors: { title: ['Title is missing.'] } })
        : whenSignedIn(signedIn, null),
    'POST /api/auth/refresh': () => ({ json: 'token' }),
    'POST /api/auth/logout': () => success('')
  }
}

const right = { username: 'ada', password: 'right' }

void tap.test('vben works with what its own mock answers', t =>
  walk(t, vben, fakePage(fake), {
    wrongPassword: ['Username or password is incorrect.'],
    saveMessages: ['Not saved.'],
    fieldErrors: { title: 'Title is missing.' },
    menu: ['Start'],
    permissions: ['AC_100'],
    afterEnd: ['GET /api/table/list', 'POST /api/auth/logout']
  })
)

void tap.test(
  'vben stays at the sign-in page without a truthy token, and says nothing',
  async t => {
    for (const accessToken of ['', null, undefined]) {
      const page = fakePage(fake, { 'POST /api/auth/login': () => success({ accessToken }) })
      t.strictSame(await vben.open(page).signIn(right), {
        at: 'sign-in',
        messages: [],
        content: undefined
      })
    }
  }
)

void tap.test('vben takes no other code of success than the number 0', async t => {
  for (const code of [200, '0', 20000, undefined]) {
    const page = fakePage(fake, {
      'GET /api/user/info': (json: object) => ({ json: { ...json, code } })
    })
    const screen = await vben.open(page).signIn(right)
    t.match(screen, { at: 'sign-in', content: undefined })
    t.equal(screen.messages.length, 1)
  }
})

void tap.test('vben knows the end of a session by status 401 only', async t => {
  const page = fakePage(fake, {
    'GET /api/table/list': () => ({ json: { code: 401, message: 'Sign in again.' } })
  })
  const console = vben.open(page)
  await console.signIn(right)
  t.match(await console.list(1, 10), { at: 'inside', messages: ['Sign in again.'] })
})

void tap.test(
  'vben renews its token after 401, sends the request again, and gives up once',
  async t => {
    const page = fakePage(fake)
    const console = vbenRefreshing.open(page)
    await console.signIn(right)
    t.match(await console.refresh?.(), { at: 'inside', content: true })
    page.endSession()
    page.requests.length = 0
    t.match(await console.list(1, 10), { at: 'sign-in', content: undefined })
    t.strictSame(page.requests, [
      'GET /api/table/list',
      'POST /api/auth/refresh',
      'GET /api/table/list',
      'POST /api/auth/logout'
    ])
  }
)
