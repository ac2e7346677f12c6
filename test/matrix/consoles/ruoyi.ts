/**
 * RuoYi-Vue3. Source: yangzongzhuan/RuoYi-Vue3@e019ee1. Its request layer is the file
 * utils/request.js around axios. Paths below are those of src.
 */
import { type AxiosError, axios, type AxiosRequest, get, post } from '../axios.ts'
import {
  ConsoleFault,
  type Display,
  listOf,
  Layer,
  openConsole,
  orElse,
  type Parts,
  read,
  tableOf,
  text,
  textsOf,
  titlesOf
} from '../display.ts'
import type { Driver, Page, ShownUser } from '../driver.ts'

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
  // api/system/notice.js:4-10 and :21-27
  calls: { list: `${api}/system/notice/list`, save: `${api}/system/notice` },
  open: page => openConsole(display => partsOf(page, display))
}

function partsOf(page: Page, display: Display): Parts {
  const client = new Requests(page, display)
  let permissions: readonly string[] = []
  let routes: readonly unknown[] = []

  /** store/modules/user.js:41-77: user, roles and permissions stand at the top of the body. */
  async function fetchUser(): Promise<ShownUser> {
    const info = await client.request(get('/getInfo'))
    const name = text(read(info, 'user', 'nickName'))
    const roles = read(info, 'roles')
    if (!Array.isArray(roles) || roles.length === 0) return { name, roles: ['ROLE_DEFAULT'] }
    permissions = textsOf(read(info, 'permissions'))
    return { name, roles: textsOf(roles) }
  }

  /** permission.js:41-61, with a token; store/modules/permission.js:35-55 */
  const enter = () =>
    orElse(
      async () => {
        const user = await client.whileEntering(async () => {
          const fetched = await fetchUser()
          routes = listOf(read(await client.request(get('/getRouters')), 'data'))
          return fetched
        })
        display.at = 'inside'
        await bell()
        return user
      },
      async ({ message }) => {
        await client.logOut()
        display.say(message)
        return undefined
      }
    )

  /** layout/components/HeaderNotice/index.vue:53-63, in the header of every page */
  const bell = () =>
    orElse<unknown>(
      async () => listOf(read(await client.request(get('/system/notice/listTop')), 'data') || []),
      async () => {}
    )

  return {
    // permission.js:21-72
    token: () => page.cookies.get(tokenCookie),
    enter,
    signIn: async ({ username, password, captcha: code = '' }) => {
      // views/login.vue:143-151: the picture, if the body does not switch it off.
      const shown = await client.request(get('/captchaImage'), false)
      const isNeeded = read(shown, 'captchaEnabled') !== false
      if (isNeeded && !read(shown, 'img')) throw new ConsoleFault('the picture is broken')
      // views/login.vue:92 and :108: the form is not sent without a code.
      if (isNeeded && code === '') throw new ConsoleFault('请输入验证码')
      const uuid = read(shown, 'uuid') ?? ''
      const data = { username: username.trim(), password, code, uuid }
      const login = await client.request(post('/login', data), false)
      // store/modules/user.js:31: js-cookie stores what is missing as the text "undefined".
      page.cookies.set(tokenCookie, String(read(login, 'token')))
      return page.cookies.get(tokenCookie) ? enter() : undefined
    },
    menu: async () => ({ entries: titlesOf(routes), permissions }),
    // views/system/notice/index.vue:184 and :199-206
    list: async (pageNum, pageSize, title) => {
      const call = get('/system/notice/list', { title, pageNum, pageSize })
      const response = await client.request(call)
      return tableOf(read(response, 'rows'), read(response, 'total'))
    },
    // utils/request.js:98-107: the page gets a message, and no body.
    save: values => client.request(post('/system/notice', values)),
    // layout/components/Navbar.vue:112-122
    signOut: () => client.logOut()
  }
}

class Requests extends Layer {
  /** utils/request.js:12: no second dialog while one is open, or while the page is entered. */
  #isDialogOpen = false

  /** permission.js:42-46 */
  async whileEntering<Result>(act: () => Promise<Result>): Promise<Result> {
    this.#isDialogOpen = true
    const result = await act()
    this.#isDialogOpen = false
    return result
  }

  /** utils/request.js:24-124. @returns the whole body */
  async request(call: AxiosRequest, isToken = true): Promise<unknown> {
    const token = isToken ? this.page.cookies.get(tokenCookie) : undefined
    const headers = {
      'content-type': 'application/json;charset=utf-8',
      'Authorization': token === undefined ? null : `Bearer ${token}`
    }
    const sent = { ...call, url: api + call.url, headers }
    const { data: body } = await axios(this.page, sent, error => this.display.say(wordsOf(error)))
    const code = read(body, 'code') || 200
    if (code === 200) return body
    if (code === 401) return this.#askAgain()
    const message = errorWords[text(code)] || read(body, 'msg') || defaultWords
    this.display.say(message)
    throw new ConsoleFault(code === 500 || code === 601 ? text(message) : 'error')
  }

  /** store/modules/user.js:79-91: only a sign-out that succeeds removes the token. */
  async logOut(): Promise<void> {
    await this.request(post('/logout'))
    this.page.cookies.remove(tokenCookie)
    this.display.at = 'sign-in'
  }

  /** utils/request.js:85-97. The user presses "重新登录". */
  async #askAgain(): Promise<never> {
    if (!this.#isDialogOpen) {
      this.display.say('登录状态已过期，您可以继续留在该页面，或者重新登录')
      await this.logOut()
    }
    throw new ConsoleFault('无效的会话，或者会话已过期，请重新登录。')
  }
}

/** utils/request.js:113-120: a status that is not 2xx; its body is not read. */
function wordsOf({ message, response }: AxiosError): string {
  if (response === undefined) return '后端接口连接异常'
  return message.startsWith('Request failed with') ? `系统接口${response.status}异常` : message
}
