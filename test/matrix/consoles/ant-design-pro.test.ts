import tap from 'tap'
import { antDesignPro } from './ant-design-pro.ts'
import { type Fake, fakePage, firstPage, secondPage } from './fake.ts'
import { walk } from './walk.ts'

const failure = (errorMessage: string, showType: number, data: unknown = null) => ({
  json: { success: false, errorCode: 'E1', errorMessage, showType, data }
})
const ended = failure('请先登录！', 9)

/** mock/user.ts and mock/listTableList.ts at adfd440, with a cookie in place of its variable */
function fakeWith(session: { open: boolean }): Fake {
  return {
    token: ['cookie', 'unused'],
    routes: {
      'POST /api/login/account': ({ body }) => {
        session.open = body['password'] === 'right'
        const status = session.open ? 'ok' : 'error'
        return { json: { status, type: body['type'], currentAuthority: 'admin' } }
      },
      'GET /api/currentUser': () =>
        session.open ? { json: { success: true, data: { name: 'Ada', access: 'admin' } } } : ended,
      'GET /api/rule': ({ query }) => {
        const data = query.get('current') === '2' ? secondPage : firstPage
        return session.open ? { json: { success: true, data, total: 25 } } : ended
      },
      'POST /api/rule': ({ body }) =>
        body['title'] === ''
          ? failure('Not saved.', 2, { title: 'Title is missing.' })
          : { json: { success: true, data: {} } },
      'POST /api/login/outLogin': () => {
        session.open = false
        return { json: { data: {}, success: true } }
      }
    }
  }
}

const right = { username: 'ada', password: 'right' }

void tap.test('ant-design-pro works with what its own mock answers', t => {
  const session = { open: false }
  return walk(t, antDesignPro, fakePage(fakeWith(session)), {
    wrongPassword: ['错误的用户名和密码(admin/ant.design)'],
    saveMessages: ['Not saved.', 'Adding failed, please try again!'],
    fieldErrors: { title: 'Title is missing.' },
    menu: [],
    permissions: ['canAdmin'],
    beforeEnd: () => {
      session.open = false
    },
    afterEnd: ['GET /api/rule']
  })
})

void tap.test('ant-design-pro goes in only where the status stands at the top', async t => {
  const session = { open: false }
  const page = fakePage(fakeWith(session), {
    'POST /api/login/account': json => ({ json: { success: true, data: json } })
  })
  t.match(await antDesignPro.open(page).signIn(right), { at: 'sign-in', messages: [] })
})

void tap.test('ant-design-pro shows no words of the server under a status beyond 2xx', async t => {
  const session = { open: false }
  const page = fakePage(fakeWith(session), {
    'GET /api/rule': json => ({ status: 401, json })
  })
  const console = antDesignPro.open(page)
  await console.signIn(right)
  session.open = false
  t.match(await console.list(1, 10), { at: 'inside', messages: ['Response status:401'] })
})

void tap.test('ant-design-pro lets nobody in without a user under `data`', async t => {
  const page = fakePage(fakeWith({ open: false }), {
    'GET /api/currentUser': () => ({ json: { success: true, name: 'Ada' } })
  })
  t.match(await antDesignPro.open(page).signIn(right), { at: 'sign-in', content: undefined })
})
