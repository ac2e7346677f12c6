/**
 * Ant Design Pro 6. Source: ant-design/ant-design-pro@adfd440 (v6.0.3). Paths below are those of src.
 * `baseURL` of app.tsx:193 must be emptied in the console, or its requests go to the demo's host.
 */
import { ConsoleFault, Display, fieldErrorsOf, read, tableOf, text } from '../display.ts'
import type { Driver, OpenConsole, Page, ShownUser } from '../driver.ts'
import { BizError, errorsIn, umiRequest } from '../umi.ts'

/** locales/zh-CN/pages.ts:5-7 */
const wrongPassword = '错误的用户名和密码(admin/ant.design)'
const signInFailed = '登录失败，请重试！'
/** pages/table-list/components/CreateForm.tsx:36-38 */
const notAdded = 'Adding failed, please try again!'

export const antDesignPro: Driver = {
  name: 'ant-design-pro',
  calls: {
    // services/ant-design-pro/api.ts:44-62 and :75-84
    list: { method: 'GET', path: '/api/rule' },
    save: { method: 'POST', path: '/api/rule' }
  },
  open: openAntDesignPro
}

function openAntDesignPro(page: Page): OpenConsole {
  const display = new Display()
  const request = umiRequest({
    page,
    display,
    throwError,
    // requestErrorConfig.ts:66-68: the page is loaded again, at the sign-in page.
    redirect: () => {
      display.at = 'sign-in'
    },
    // requestErrorConfig.ts:73-76: the body is not read.
    statusMessage: status => `Response status:${status}`
  })
  let user: unknown

  /** app.tsx:39-52 and :113-121 */
  async function fetchUser(): Promise<ShownUser | undefined> {
    user = undefined
    try {
      const call = { method: 'GET', url: '/api/currentUser' } as const
      user = read(await request(call, { skipErrorHandler: true }), 'data')
    } catch (error) {
      if (!(error instanceof ConsoleFault)) throw error
    }
    display.at = user ? 'inside' : 'sign-in'
    if (!user) return undefined
    const access = text(read(user, 'access'))
    return { name: text(read(user, 'name')), roles: access === '' ? [] : [access] }
  }

  return {
    start: () => display.step(fetchUser),
    // pages/user/login/index.tsx:150-175
    signIn: ({ username, password }) =>
      display.step(async () => {
        const data = { username, password, autoLogin: true, type: 'account' }
        let login: unknown
        try {
          login = await request({ method: 'POST', url: '/api/login/account', data })
        } catch (error) {
          if (error instanceof ConsoleFault) display.say(signInFailed)
          throw error
        }
        if (read(login, 'status') === 'ok') {
          // The user is read, then the page is loaded again.
          await fetchUser()
          return fetchUser()
        }
        // pages/user/login/index.tsx:243-250
        if (read(login, 'status') === 'error' && read(login, 'type') === 'account') {
          display.say(wrongPassword)
        }
        return undefined
      }),
    // access.ts:4-11: the menu is in the console, by `canAdmin`.
    menu: () =>
      display.step(async () => ({
        entries: [],
        permissions: read(user ?? {}, 'access') === 'admin' ? ['canAdmin'] : []
      })),
    // services/ant-design-pro/api.ts:44-62; ProTable reads `data`, `total` and `success`.
    list: (current, pageSize, title) =>
      display.step(async () => {
        const params = { title, current, pageSize }
        const body = await request({ method: 'GET', url: '/api/rule', params })
        return tableOf(read(body, 'data') ?? [], read(body, 'total') ?? 0)
      }),
    save: values =>
      display.step(async () => {
        try {
          await request({ method: 'POST', url: '/api/rule', data: { method: 'post', ...values } })
          return { saved: true }
        } catch (error) {
          if (!(error instanceof ConsoleFault)) throw error
          display.say(notAdded)
          return { saved: false, fieldErrors: fieldErrorsOf(errorsIn(error)) }
        }
      }),
    // components/RightContent/AvatarDropdown.tsx:38-56: whatever the response is.
    signOut: () =>
      display.step(async () => {
        try {
          await request({ method: 'POST', url: '/api/login/outLogin' })
        } catch (error) {
          if (!(error instanceof ConsoleFault)) throw error
        }
        display.at = 'sign-in'
        return undefined
      })
  }
}

/** @umijs/plugins dist/request.js:227-233 and requestErrorConfig.ts:32-41 */
function throwError(body: unknown): void {
  if (read(body ?? {}, 'success') !== false) return
  const message = read(body, 'errorMessage')
  const info = { message, showType: read(body, 'showType'), data: read(body, 'data') }
  throw new BizError(text(message), info)
}
