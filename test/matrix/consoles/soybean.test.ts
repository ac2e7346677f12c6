import tap from 'tap'
import { type Fake, fakePage, firstPage, secondPage } from './fake.ts'
import { soybean } from './soybean.ts'
import { walk } from './walk.ts'

const success = (data: unknown) => ({ json: { code: '0000', msg: 'ok', data } })
const failure = (code: string, msg: string, extra = {}) => ({
  json: { code, msg, data: null, ...extra }
})
const ended = failure('8888', 'Your session has ended.')

const fake: Fake = {
  token: ['authorization', 'Bearer token'],
  routes: {
    'POST /auth/login': ({ body }) =>
      body['userName'] === 'ada' && body['password'] === 'right'
        ? success({ token: 'token', refreshToken: 'refresh' })
        : failure('1001', 'Wrong password.'),
    'GET /auth/getUserInfo': ({ signedIn }) =>
      signedIn
        ? success({ userId: '1', userName: 'Ada', roles: ['admin'], buttons: ['B_CODE1'] })
        : ended,
    'GET /route/getUserRoutes': ({ signedIn }) =>
      signedIn ? success({ routes: [{ name: 'home' }], home: 'home' }) : ended,
    'GET /systemManage/getUserList': ({ signedIn, query }) => {
      const records = query.get('current') === '2' ? secondPage : firstPage
      const current = Number(query.get('current'))
      return signedIn ? success({ records, total: 25, current, size: 10 }) : ended
    },
    'POST /systemManage/addUser': ({ body }) =>
      body['title'] === ''
        ? failure('1002', 'Not saved.', { fieldErrors: { title: 'Title is missing.' } })
        : success(null),
    'POST /auth/refreshToken': ({ body }) =>
      body['refreshToken'] === 'refresh'
        ? success({ token: 'token', refreshToken: 'refresh' })
        : ended
  }
}

const right = { username: 'ada', password: 'right' }

void tap.test('soybean works with what its own mock answers', t =>
  walk(t, soybean, fakePage(fake), {
    wrongPassword: ['Wrong password.'],
    saveMessages: ['Not saved.'],
    fieldErrors: { title: 'Title is missing.' },
    menu: ['home'],
    permissions: ['B_CODE1'],
    afterEnd: ['GET /systemManage/getUserList']
  })
)

void tap.test('soybean compares the code of success as text with all its zeros', async t => {
  for (const code of [0, '0', 200, undefined]) {
    const page = fakePage(fake, {
      'POST /auth/login': json => ({ json: { ...(json as object), code } })
    })
    t.match(await soybean.open(page).signIn(right), { at: 'sign-in', content: undefined })
  }
})

void tap.test('soybean shows the message of a body under status 200 only', async t => {
  const page = fakePage(fake, {
    'POST /auth/login': json => ({ status: 403, json })
  })
  t.match(await soybean.open(page).signIn({ ...right, password: 'wrong' }), {
    at: 'sign-in',
    messages: ['Request failed with status code 403']
  })
})

void tap.test('soybean cannot go in without a token, though nothing tells the user', async t => {
  const page = fakePage(fake, { 'POST /auth/login': () => success({ token: '' }) })
  t.match(await soybean.open(page).signIn(right), { at: 'sign-in', content: undefined })
})

void tap.test('soybean renews its token on 9999 and sends the request again', async t => {
  const expired = failure('9999', 'Expired.')
  let refused = 0
  const page = fakePage(fake, {
    'GET /systemManage/getUserList': json => (refused++ < 1 ? expired : { json })
  })
  const console = soybean.open(page)
  await console.signIn(right)
  t.match(await console.refresh?.(), { at: 'inside', content: true })
  page.requests.length = 0
  t.match(await console.list(2, 10), { at: 'inside', messages: [], content: { rows: secondPage } })
  t.strictSame(page.requests, [
    'GET /systemManage/getUserList',
    'POST /auth/refreshToken',
    'GET /systemManage/getUserList'
  ])
})

void tap.test('a refresh that soybean is told to refresh never ends', async t => {
  const expired = failure('9999', 'Expired.')
  const page = fakePage(fake, {
    'GET /systemManage/getUserList': () => expired,
    'POST /auth/refreshToken': () => expired
  })
  const console = soybean.open(page)
  await console.signIn(right)
  t.match(await console.list(1, 10), { at: 'inside', fault: 'The refresh waits for itself.' })
})
