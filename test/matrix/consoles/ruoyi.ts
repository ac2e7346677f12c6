/**
 * RuoYi-Vue3. Source: yangzongzhuan/RuoYi-Vue3@e019ee1. Its request layer is the file
 * utils/request.js around axios. Paths below are those of src.
 */
import { AxiosError, axios, type AxiosRequest } from '../axios.ts'
import { ConsoleFault, Display, listOf, read, tableOf, text, textsOf } from '../display.ts'
import type { Driver, OpenConsole, Page, ShownUser } from '../driver.ts'

/** .env.production:8 */
const api = '/prod-api'

/** utils/auth.js:3 */
const tokenCookie = 'Admin-Token'

/** utils/errorCode.js: words that win over the message of the body. */
const errorWords: Readonly<Record<string, string>> = {
  401: '认证失败，无法访问系统资源',
  403: '当前操作没有权限',
  404: '访问资源不存在'
}
const defaultWords = '系统未知错误，请反馈给管理员'

export const ruoyi: Driver = {
  name: 'ruoyi',
  calls: {
    // api/system/notice.js:4-10 and :21-27
    list: { method: 'GET', path: `${api}/system/notice/list` },
    save: { method: 'POST', path: `${api}/system/notice` }
  },
  open: openRuoYi
}

function openRuoYi(page: Page): OpenConsole {
  const display = new Display()
  const client = new Requests(page, display)
  let permissions: readonly string[] = []
  let routes: readonly unknown[] = []

  /** store/modules/user.js:79-91: only a sign-out that succeeds removes the token. */
  async function logOut(): Promise<void> {
    await client.request({ method: 'POST', url: '/logout' })
    page.cookies.remove(tokenCookie)
    display.at = 'sign-in'
  }

  /** store/modules/user.js:41-77: user, roles and permissions stand at the top of the body. */
  async function fetchUser(): Promise<ShownUser> {
    const info = await client.request({ method: 'GET', url: '/getInfo' })
    const user = read(info, 'user')
    const name = text(read(user, 'nickName'))
    const roles = read(info, 'roles')
    if (!Array.isArray(roles) || roles.length === 0) return { name, roles: ['ROLE_DEFAULT'] }
    permissions = textsOf(read(info, 'permissions'))
    return { name, roles: textsOf(roles) }
  }

  /** store/modules/permission.js:35-55 */
  async function fetchRoutes(): Promise<void> {
    const response = await client.request({ method: 'GET', url: '/getRouters' })
    routes = listOf(read(response, 'data'))
  }

  /** permission.js:41-61, with a token */
  async function enter(): Promise<ShownUser | undefined> {
    try {
      const user = await client.whileEntering(async () => {
        const fetched = await fetchUser()
        await fetchRoutes()
        return fetched
      })
      display.at = 'inside'
      await bell()
      return user
    } catch (error) {
      if (!(error instanceof ConsoleFault)) throw error
      await logOut()
      display.say(error.message)
      return undefined
    }
  }

  /** layout/components/HeaderNotice/index.vue:53-63, in the header of every page */
  async function bell(): Promise<void> {
    try {
      const response = await client.request({ method: 'GET', url: '/system/notice/listTop' })
      listOf(read(response, 'data') || [])
    } catch (error) {
      if (!(error instanceof ConsoleFault)) throw error
    }
  }

  /** views/login.vue:143-151: the picture, if the body does not switch it off. */
  async function fetchCaptcha(): Promise<{ required: boolean; uuid: unknown }> {
    const response = await client.request({ method: 'GET', url: '/captchaImage' }, false)
    const required = read(response, 'captchaEnabled') !== false
    if (required && !read(response, 'img')) throw new ConsoleFault('the picture is broken')
    return { required, uuid: read(response, 'uuid') ?? '' }
  }

  return {
    // permission.js:21-72
    start: () =>
      display.step(async () => {
        if (page.cookies.get(tokenCookie)) return enter()
        display.at = 'sign-in'
        return undefined
      }),
    signIn: ({ username, password, captcha = '' }) =>
      display.step(async () => {
        const { required, uuid } = await fetchCaptcha()
        // views/login.vue:92 and :108: the form is not sent without a code.
        if (required && captcha === '') throw new ConsoleFault('请输入验证码')
        const data = {
          username: username.trim(),
          password,
          code: captcha,
          uuid
        }
        const login = await client.request({ method: 'POST', url: '/login', data }, false)
        // store/modules/user.js:31: js-cookie stores what is missing as the text "undefined".
        page.cookies.set(tokenCookie, String(read(login, 'token')))
        return page.cookies.get(tokenCookie) ? enter() : undefined
      }),
    menu: () =>
      display.step(async () => ({
        entries: routes
          .filter(route => !read(route, 'hidden'))
          .map(route => text(read(route, 'meta', 'title'))),
        permissions
      })),
    // views/system/notice/index.vue:184 and :199-206
    list: (pageNum, pageSize, title) =>
      display.step(async () => {
        const params = { title, pageNum, pageSize }
        const url = '/system/notice/list'
        const response = await client.request({ method: 'GET', url, params })
        return tableOf(read(response, 'rows'), read(response, 'total'))
      }),
    // utils/request.js:98-107: the page gets a message, and no body.
    save: values =>
      display.save(() => client.request({ method: 'POST', url: '/system/notice', data: values })),
    // layout/components/Navbar.vue:112-122
    signOut: () =>
      display.step(async () => {
        await logOut()
        return undefined
      })
  }
}

class Requests {
  readonly #page: Page
  readonly #display: Display
  /** utils/request.js:12: no second dialog while one is open, or while the page is entered. */
  #isDialogOpen = false

  constructor(page: Page, display: Display) {
    this.#page = page
    this.#display = display
  }

  /** permission.js:42-46 */
  async whileEntering<Result>(act: () => Promise<Result>): Promise<Result> {
    this.#isDialogOpen = true
    const result = await act()
    this.#isDialogOpen = false
    return result
  }

  /** utils/request.js:24-124. @returns the whole body */
  async request(request: AxiosRequest, isToken = true): Promise<unknown> {
    const token = isToken ? this.#page.cookies.get(tokenCookie) : undefined
    const headers = {
      'content-type': 'application/json;charset=utf-8',
      'Authorization': token === undefined ? null : `Bearer ${token}`
    }
    let body: unknown
    try {
      const url = `${api}${request.url}`
      body = (await axios(this.#page, { ...request, url, headers })).data
    } catch (error) {
      if (error instanceof AxiosError) this.#display.say(wordsOf(error))
      throw error
    }
    const code = read(body, 'code') || 200
    if (code === 200) return body
    if (code === 401) return this.#askAgain()
    const message = errorWords[text(code)] || read(body, 'msg') || defaultWords
    this.#display.say(message)
    throw new ConsoleFault(code === 500 || code === 601 ? text(message) : 'error')
  }

  /** utils/request.js:85-97. The user presses "重新登录". */
  async #askAgain(): Promise<never> {
    if (!this.#isDialogOpen) {
      this.#display.say('登录状态已过期，您可以继续留在该页面，或者重新登录')
      await this.request({ method: 'POST', url: '/logout' })
      this.#page.cookies.remove(tokenCookie)
      this.#display.at = 'sign-in'
    }
    throw new ConsoleFault('无效的会话，或者会话已过期，请重新登录。')
  }
}

/** utils/request.js:113-120: a status that is not 2xx; its body is not read. */
function wordsOf({ message, response }: AxiosError): string {
  if (response === undefined) return '后端接口连接异常'
  return message.startsWith('Request failed with') ? `系统接口${response.status}异常` : message
}
