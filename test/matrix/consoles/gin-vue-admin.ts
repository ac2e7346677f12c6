/**
 * gin-vue-admin. Source: flipped-aurora/gin-vue-admin@02f3783, folder web. Its request layer is the
 * file utils/request.js around axios. Paths below are those of web/src.
 */
import { AxiosError, axios, type AxiosRequest } from '../axios.ts'
import { ConsoleFault, Display, listOf, read, tableOf, text } from '../display.ts'
import type { Driver, OpenConsole, Page, ShownUser } from '../driver.ts'

/** web/.env.production:4 */
const api = '/api'

/** pinia/modules/user.js:23 */
const storageKey = 'token'

export const ginVueAdmin: Driver = {
  name: 'gin-vue-admin',
  calls: {
    // plugin/announcement/api/info.js
    list: { method: 'GET', path: `${api}/info/getInfoList` },
    save: { method: 'POST', path: `${api}/info/createInfo` }
  },
  open: openGinVueAdmin
}

function openGinVueAdmin(page: Page): OpenConsole {
  const display = new Display()
  const client = new Requests(page, display)
  let menus: readonly unknown[] = []
  /** pinia/modules/router.js:158-193: each entry needs `meta` (:17-20). */
  async function fetchMenus(): Promise<void> {
    const response = await client.request({ method: 'POST', url: '/menu/getMenu' })
    const entries = listOf(read(response, 'data', 'menus'))
    for (const entry of entries) read(entry, 'meta', 'defaultMenu')
    menus = entries
  }

  /** api/user.js and pinia/modules/user.js:49-55 */
  async function fetchUser(): Promise<unknown> {
    const response = await client.request({ method: 'GET', url: '/user/getUserInfo' })
    if (read(response, 'code') !== 0) throw new ConsoleFault('no user')
    return read(response, 'data', 'userInfo')
  }

  /** views show `nickName`; roles stand in `authority`. */
  const shown = (user: unknown): ShownUser => ({
    name: text(read(user, 'nickName')),
    roles: [text(read(user, 'authority', 'authorityName'))]
  })

  return {
    // permission.js:118-146 and :186-199
    start: () =>
      display.step(async () => {
        if (!page.localStorage.getItem(storageKey)) {
          display.at = 'sign-in'
          return undefined
        }
        display.at = 'inside'
        const [, user] = await Promise.all([fetchMenus(), fetchUser()])
        client.userId = read(user, 'ID')
        return shown(user)
      }),
    signIn: ({ username, password, captcha = '' }) =>
      display.step(async () => {
        // view/login/index.vue:169-176
        const picture = await client.request({ method: 'POST', url: '/base/captcha' })
        const shownCaptcha = read(picture, 'data') ?? {}
        const openCaptcha = Boolean(read(shownCaptcha, 'openCaptcha'))
        checkForm(username, password)
        if (openCaptcha) checkCaptcha(captcha, Number(read(shownCaptcha, 'captchaLength')) || 0)
        const data = {
          username,
          password,
          captcha,
          captchaId: read(shownCaptcha, 'captchaId'),
          openCaptcha
        }
        // pinia/modules/user.js:57-111
        const login = await client.request({ method: 'POST', url: '/base/login', data })
        if (read(login, 'code') !== 0) return undefined
        const user = read(login, 'data', 'user')
        client.userId = read(user, 'ID')
        page.localStorage.setItem(storageKey, text(read(login, 'data', 'token')))
        await fetchMenus()
        const home = read(user, 'authority', 'defaultRouter')
        if (!menus.some(menu => read(menu, 'name') === home)) {
          display.say('不存在可以登陆的首页，请联系管理员进行配置')
          return undefined
        }
        display.at = 'inside'
        return shown(user)
      }),
    menu: () =>
      display.step(async () => ({
        entries: menus
          .filter(menu => !read(menu, 'hidden'))
          .map(menu => text(read(menu, 'meta', 'title'))),
        permissions: []
      })),
    // plugin/announcement/view/info.vue:342-354: the response sets the size of the next request.
    list: (current, size, title) =>
      display.step(async () => {
        const params = { title, page: current, pageSize: size }
        const url = '/info/getInfoList'
        const table = await client.request({ method: 'GET', url, params })
        if (read(table, 'code') !== 0) throw new ConsoleFault('the table stays as it was')
        const data = read(table, 'data')
        // plugin/announcement/view/info.vue: the table takes its page and its size from the answer.
        if (read(data, 'page') !== current || read(data, 'pageSize') !== size) {
          throw new ConsoleFault('the list is not of the page that was asked for')
        }
        return tableOf(read(data, 'list'), read(data, 'total'))
      }),
    save: values =>
      display.step(async () => {
        const request = { method: 'POST', url: '/info/createInfo', data: values } as const
        try {
          const response = await client.request(request)
          // utils/request.js:215: the page gets the body of a refusal under status 2xx, and reads `code`.
          return { saved: read(response, 'code') === 0 }
        } catch (error) {
          if (!(error instanceof ConsoleFault)) throw error
          return { saved: false }
        }
      }),
    // pinia/modules/user.js:113-126 and api/jwt.js
    signOut: () =>
      display.step(async () => {
        const response = await client.request({ method: 'POST', url: '/jwt/jsonInBlacklist' })
        if (read(response, 'code') !== 0) return undefined
        page.localStorage.removeItem(storageKey)
        display.at = 'sign-in'
        return undefined
      })
  }
}

/** view/login/index.vue:132-145 */
function checkForm(username: string, password: string): void {
  if (username.length < 5) throw new ConsoleFault('请输入正确的用户名')
  if (password.length < 6) throw new ConsoleFault('请输入正确的密码')
}

/** view/login/index.vue:146-166 */
function checkCaptcha(captcha: string, length: number): void {
  if (!/^\d+$/.test(captcha)) throw new ConsoleFault('验证码须为数字')
  if (captcha.length < length) throw new ConsoleFault(`请输入至少${length}位数字验证码`)
}

class Requests {
  readonly #page: Page
  readonly #display: Display
  /** pinia/modules/user.js:17 */
  userId: unknown

  constructor(page: Page, display: Display) {
    this.#page = page
    this.#display = display
  }

  /** utils/request.js:120-255. @returns the whole body */
  async request(request: AxiosRequest): Promise<unknown> {
    const headers = {
      'x-token': this.#page.localStorage.getItem(storageKey),
      'x-user-id': this.userId === undefined ? null : text(this.userId)
    }
    try {
      const url = `${api}${request.url}`
      const response = await axios(this.#page, { ...request, url, headers })
      // :198-200
      const renewed = response.header('new-token')
      if (renewed !== null) this.#page.localStorage.setItem(storageKey, renewed)
      return this.#read(response.data)
    } catch (error) {
      if (error instanceof AxiosError) this.#refuse(error)
      throw error
    }
  }

  /** :202-215 */
  #read(body: unknown): unknown {
    const code = read(body, 'code')
    if (code !== undefined && code !== 0) this.#display.say(read(body, 'msg') || '请求失败')
    return body
  }

  /** :156-158 and :222-253: a dialog with the message of the body. */
  #refuse({ response }: AxiosError): void {
    const body = response?.data ?? {}
    this.#display.say(read(body, 'msg') || '请求失败')
    if (response?.status !== 401) return
    this.#page.localStorage.removeItem(storageKey)
    this.#display.at = 'sign-in'
  }
}
