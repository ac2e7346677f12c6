import tap from 'tap'
import { baseResponse } from './base-response.ts'
import { type Fake, type FakePage, fakePage, firstPage, secondPage } from './fake.ts'
import { walk } from './walk.ts'

const success = (data: unknown) => ({ json: { ok: true, code: 200, message: 'success', data } })
const failure = (code: number, message: string, data: unknown = null) => ({
  json: { ok: false, code, message, data }
})
const whenSignedIn = (signedIn: boolean, data: unknown) =>
  signedIn ? success(data) : failure(401, 'Sign in.')

/** apps/server at 4f44206, where a sign-out ends the token */
const fakeWith = (signOut: () => void): Fake => ({
  token: ['authorization', 'Bearer token'],
  routes: {
    'POST /api/auth/admin/login': ({ body }) =>
      body['password'] === 'right'
        ? success({ authToken: 'token' })
        : failure(1001, 'Wrong password.'),
    'GET /api/account/profile': ({ signedIn }) =>
      whenSignedIn(signedIn, { name: 'Ada', role: 'Admin' }),
    'GET /api/users/page': ({ signedIn, query }) =>
      whenSignedIn(signedIn, {
        items: query.get('page') === '2' && query.get('limit') === '10' ? secondPage : firstPage,
        meta: { totalCount: 25 }
      }),
    'POST /api/users': ({ body }) =>
      body['title'] === ''
        ? failure(1002, 'Not saved.', { title: ['Title is missing.'] })
        : success(null),
    'GET /api/account/logout': () => {
      signOut()
      return success(null)
    }
  }
})
const fake = fakeWith(() => {})

const right = { username: 'ada', password: 'right' }

void tap.test('base-response works with what its own server answers', t => {
  const page: FakePage = fakePage(fakeWith(() => page.endSession()))
  return walk(t, baseResponse, page, {
    wrongPassword: ['Wrong password.'],
    saveMessages: ['Not saved.'],
    fieldErrors: { title: 'Title is missing.' },
    menu: [],
    permissions: ['canAdmin'],
    roles: ['Admin'],
    afterEnd: ['GET /api/users/page', 'GET /api/account/profile']
  })
})

void tap.test('base-response goes in only with `ok` at the sign-in', async t => {
  for (const ok of [false, undefined, 0]) {
    const page = fakePage(fake, {
      'POST /api/auth/admin/login': json => ({ json: { ...(json as object), ok } })
    })
    t.match(await baseResponse.open(page).signIn(right), { at: 'sign-in', content: undefined })
  }
})

void tap.test('base-response shows the message of a body under any status', async t => {
  const page = fakePage(fake, {
    'GET /api/users/page': () => ({ status: 401, json: { ok: false, message: 'Sign in again.' } })
  })
  const console = baseResponse.open(page)
  await console.signIn(right)
  t.match(await console.list(1, 10), { at: 'inside', messages: ['Sign in again.'] })
})

void tap.test('base-response stays where it is when its sign-out is refused', async t => {
  const page = fakePage(fake, { 'GET /api/account/logout': () => failure(500, 'Later.') })
  const console = baseResponse.open(page)
  await console.signIn(right)
  t.match(await console.signOut(), { at: 'inside', messages: ['Later.'] })
})
