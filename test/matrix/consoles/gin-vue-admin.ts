/**
 * gin-vue-admin. Source: flipped-aurora/gin-vue-admin@02f3783, folder web. Its request layer is the
 * file utils/request.js around axios. Paths below are those of web/src.
 */
import { type AxiosError, axios, type AxiosRequest, get, post } from '../axios.ts'
import {
  ConsoleFault,
  type Display,
  keepsPlace,
  listOf,
  openConsole,
  type Parts,
  read,
  tableOf,
  text,
  titlesOf
} from '../display.ts'
import type { Driver, Page, ShownUser } from '../driver.ts'

/** web/.env.production:4 */
const api = '/api'

/** pinia/modules/user.js:23 */
const storageKey = 'token'

export const ginVueAdmin: Driver = {
  name: 'gin-vue-admin',
  // plugin/announcement/api/info.js
  calls: { list: `${api}/info/getInfoList`, save: `${api}/info/createInfo` },
  open: page => openConsole(display => partsOf(page, display))
}

function partsOf(page: Page, display: Display): Parts {
  const token = () => page.localStorage.getItem(storageKey)
  const request = requests(page, display, () => userId)
  /** pinia/modules/user.js:17 */
  let userId: unknown
  let menus: readonly unknown[] = []

  /** pinia/modules/router.js:158-193: each entry needs `meta` (:17-20). */
  async function fetchMenus(): Promise<void> {
    const entries = listOf(read(await request(post('/menu/getMenu')), 'data', 'menus'))
    for (const entry of entries) read(entry, 'meta', 'defaultMenu')
    menus = entries
  }

  /** api/user.js and pinia/modules/user.js:49-55 */
  async function fetchUser(): Promise<unknown> {
    const response = await request(get('/user/getUserInfo'))
    if (read(response, 'code') !== 0) throw new ConsoleFault('no user')
    return read(response, 'data', 'userInfo')
  }

  /** view/login/index.vue:169-176 */
  async function captchaOf(username: string, password: string, captcha: string) {
    const shown = read(await request(post('/base/captcha')), 'data') ?? {}
    const openCaptcha = Boolean(read(shown, 'openCaptcha'))
    const length = Number(read(shown, 'captchaLength')) || 0
    checkForm(username, password, openCaptcha ? { captcha, length } : undefined)
    return { captcha, captchaId: read(shown, 'captchaId'), openCaptcha }
  }

  return {
    token,
    // permission.js:118-146 and :186-199
    enter: async () => {
      display.at = 'inside'
      const [, user] = await Promise.all([fetchMenus(), fetchUser()])
      userId = read(user, 'ID')
      return shownOf(user)
    },
    // pinia/modules/user.js:57-111
    signIn: async ({ username, password, captcha = '' }) => {
      const data = { username, password, ...(await captchaOf(username, password, captcha)) }
      const login = await request(post('/base/login', data))
      if (read(login, 'code') !== 0) return undefined
      const user = read(login, 'data', 'user')
      userId = read(user, 'ID')
      page.localStorage.setItem(storageKey, text(read(login, 'data', 'token')))
      await fetchMenus()
      const home = read(user, 'authority', 'defaultRouter')
      if (!menus.some(menu => read(menu, 'name') === home)) {
        display.say('不存在可以登陆的首页，请联系管理员进行配置')
        return undefined
      }
      display.at = 'inside'
      return shownOf(user)
    },
    menu: async () => ({ entries: titlesOf(menus), permissions: [] }),
    list: async (current, size, title) => {
      const call = get('/info/getInfoList', { title, page: current, pageSize: size })
      const table = await request(call)
      if (read(table, 'code') !== 0) throw new ConsoleFault('the table stays as it was')
      const data = read(table, 'data')
      // plugin/announcement/view/info.vue:342-354: the table takes its page and its size from the answer.
      keepsPlace([read(data, 'page'), read(data, 'pageSize')], [current, size])
      return tableOf(read(data, 'list'), read(data, 'total'))
    },
    // utils/request.js:215: the page gets the body of a refusal under status 2xx, and reads `code`.
    save: async values => {
      const response = await request(post('/info/createInfo', values))
      if (read(response, 'code') !== 0) throw new ConsoleFault('not saved')
    },
    // pinia/modules/user.js:113-126 and api/jwt.js
    signOut: async () => {
      const response = await request(post('/jwt/jsonInBlacklist'))
      if (read(response, 'code') !== 0) return
      page.localStorage.removeItem(storageKey)
      display.at = 'sign-in'
    }
  }
}

/** Views show `nickName`; roles stand in `authority`. */
function shownOf(user: unknown): ShownUser {
  const roles = [text(read(user, 'authority', 'authorityName'))]
  return { name: text(read(user, 'nickName')), roles }
}

/** view/login/index.vue:132-166 */
function checkForm(
  username: string,
  password: string,
  shown?: { readonly captcha: string; readonly length: number }
): void {
  if (username.length < 5) throw new ConsoleFault('请输入正确的用户名')
  if (password.length < 6) throw new ConsoleFault('请输入正确的密码')
  if (shown === undefined) return
  const { captcha, length } = shown
  if (!/^\d+$/.test(captcha)) throw new ConsoleFault('验证码须为数字')
  if (captcha.length < length) throw new ConsoleFault(`请输入至少${length}位数字验证码`)
}

/** utils/request.js:120-255. @returns what gives the whole body of a call */
function requests(page: Page, display: Display, userId: () => unknown) {
  /** :156-158 and :222-253: a dialog with the message of the body. */
  const refuse = ({ response }: AxiosError) => {
    display.say(read(response?.data ?? {}, 'msg') || '请求失败')
    if (response?.status !== 401) return
    page.localStorage.removeItem(storageKey)
    display.at = 'sign-in'
  }
  return async (call: AxiosRequest): Promise<unknown> => {
    const headers = {
      'x-token': page.localStorage.getItem(storageKey),
      'x-user-id': userId() === undefined ? null : text(userId())
    }
    const response = await axios(page, { ...call, url: api + call.url, headers }, refuse)
    // :198-200
    const renewed = response.header('new-token')
    if (renewed !== null) page.localStorage.setItem(storageKey, renewed)
    // :202-215
    const { data: body } = response
    const code = read(body, 'code')
    if (code !== undefined && code !== 0) display.say(read(body, 'msg') || '请求失败')
    return body
  }
}
