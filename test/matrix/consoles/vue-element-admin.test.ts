import tap from 'tap'
import { type Fake, fakePage, firstPage, secondPage } from './fake.ts'
import { vueElementAdmin } from './vue-element-admin.ts'
import { walk } from './walk.ts'

const api = '/prod-api/vue-element-admin'
const success = (data: unknown) => ({ json: { code: 20000, data } })
const failure = (code: number, message: string) => ({ json: { code, message } })
const whenSignedIn = (signedIn: boolean, data: unknown) =>
  signedIn ? success(data) : failure(50008, 'Signed out.')

/** mock/user.js and mock/article.js at 6858a9a */
const fake: Fake = {
  token: ['x-token', 'token'],
  routes: {
    [`POST ${api}/user/login`]: ({ body }) =>
      body['password'] === 'right'
        ? success({ token: 'token' })
        : failure(60204, 'Wrong password.'),
    [`GET ${api}/user/info`]: ({ signedIn, query }) =>
      whenSignedIn(signedIn && query.get('token') === 'token', { name: 'Ada', roles: ['admin'] }),
    [`POST ${api}/user/logout`]: () => success('success'),
    [`GET ${api}/article/list`]: ({ signedIn, query }) =>
      whenSignedIn(signedIn, {
        items: query.get('page') === '2' ? secondPage : firstPage,
        total: 25
      }),
    [`POST ${api}/article/create`]: ({ body }) =>
      body['title'] === '' ? failure(60000, 'Title is missing.') : success('success')
  }
}

const right = { username: 'ada', password: 'right' }

void tap.test('vue-element-admin works with what its own mock answers', t =>
  walk(t, vueElementAdmin, fakePage(fake), {
    wrongPassword: ['Wrong password.'],
    saveMessages: ['Title is missing.'],
    menu: [],
    permissions: [],
    afterEnd: [`GET ${api}/article/list`]
  })
)

void tap.test('vue-element-admin takes no other code of success than the number 20000', async t => {
  for (const code of [0, 200, '20000', undefined]) {
    const page = fakePage(fake, {
      [`POST ${api}/user/login`]: json => ({ json: { ...(json as object), code } })
    })
    t.match(await vueElementAdmin.open(page).signIn(right), { at: 'sign-in', content: undefined })
  }
})

void tap.test('vue-element-admin shows the message of a body under status 2xx only', async t => {
  const page = fakePage(fake, { [`POST ${api}/user/login`]: json => ({ status: 403, json }) })
  t.match(await vueElementAdmin.open(page).signIn(right), {
    at: 'sign-in',
    messages: ['Request failed with status code 403']
  })
})

void tap.test('vue-element-admin lets nobody in without a list of roles', async t => {
  for (const roles of [[], null, undefined, 'user']) {
    const page = fakePage(fake, { [`GET ${api}/user/info`]: () => success({ name: 'Ada', roles }) })
    t.match(await vueElementAdmin.open(page).signIn(right), { at: 'sign-in', content: undefined })
  }
})

void tap.test('vue-element-admin stays where it is when its sign-out is refused', async t => {
  const page = fakePage(fake, { [`POST ${api}/user/logout`]: () => failure(50000, 'Later.') })
  const console = vueElementAdmin.open(page)
  await console.signIn(right)
  t.match(await console.signOut(), { at: 'inside', messages: ['Later.'] })
})
