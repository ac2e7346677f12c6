/**
 * Ant Design Pro 6. Source: ant-design/ant-design-pro@adfd440 (v6.0.3). Paths below are those of src.
 * `baseURL` of app.tsx:193 must be emptied in the console, or its requests go to the demo's host.
 */
import { get, post } from '../axios.ts'
import { type Display, openConsole, orElse, type Parts, read, tableOf, text } from '../display.ts'
import type { Driver, Page } from '../driver.ts'
import { errorsIn, umiRequest } from '../umi.ts'

/** locales/zh-CN/pages.ts:5-7 */
const wrongPassword = '错误的用户名和密码(admin/ant.design)'
const signInFailed = '登录失败，请重试！'
/** pages/table-list/components/CreateForm.tsx:36-38 */
const notAdded = 'Adding failed, please try again!'

export const antDesignPro: Driver = {
  name: 'ant-design-pro',
  // services/ant-design-pro/api.ts:44-62 and :75-84
  calls: { list: '/api/rule', save: '/api/rule' },
  open: page => openConsole(display => partsOf(page, display))
}

function partsOf(page: Page, display: Display): Parts {
  const request = umiRequest({
    page,
    display,
    // @umijs/plugins dist/request.js:227-233 and requestErrorConfig.ts:32-41
    isRefusal: body => read(body ?? {}, 'success') === false,
    message: 'errorMessage',
    // requestErrorConfig.ts:66-68: the page is loaded again, at the sign-in page.
    redirect: () => {
      display.at = 'sign-in'
    },
    // requestErrorConfig.ts:73-76: the body is not read.
    statusMessage: status => `Response status:${status}`
  })
  let user: unknown

  /** app.tsx:39-52 and :113-121; no cookie that scripts see says whether there is a session. */
  async function enter() {
    user = await orElse(
      async () => read(await request(get('/api/currentUser'), { skipErrorHandler: true }), 'data'),
      async () => undefined
    )
    display.at = user ? 'inside' : 'sign-in'
    if (!user) return undefined
    const access = text(read(user, 'access'))
    return { name: text(read(user, 'name')), roles: access === '' ? [] : [access] }
  }

  return {
    token: () => true,
    enter,
    // pages/user/login/index.tsx:150-175
    signIn: async ({ username, password }) => {
      const data = { username, password, autoLogin: true, type: 'account' }
      const login = await orElse(
        () => request(post('/api/login/account', data)),
        async error => {
          display.say(signInFailed)
          throw error
        }
      )
      if (read(login, 'status') === 'ok') {
        // The user is read, then the page is loaded again.
        await enter()
        return enter()
      }
      // pages/user/login/index.tsx:243-250
      if (read(login, 'status') === 'error' && read(login, 'type') === 'account') {
        display.say(wrongPassword)
      }
      return undefined
    },
    // access.ts:4-11: the menu is in the console, by `canAdmin`.
    menu: async () => ({
      entries: [],
      permissions: read(user ?? {}, 'access') === 'admin' ? ['canAdmin'] : []
    }),
    // services/ant-design-pro/api.ts:44-62; ProTable reads `data`, `total` and `success`.
    list: async (current, pageSize, title) => {
      const body = await request(get('/api/rule', { title, current, pageSize }))
      return tableOf(read(body, 'data') ?? [], read(body, 'total') ?? 0)
    },
    save: values => request(post('/api/rule', { method: 'post', ...values })),
    fieldErrors: error => {
      display.say(notAdded)
      return errorsIn(error)
    },
    // components/RightContent/AvatarDropdown.tsx:38-56: whatever the response is.
    signOut: async () => {
      await orElse(
        () => request(post('/api/login/outLogin')),
        async () => undefined
      )
      display.at = 'sign-in'
    }
  }
}
