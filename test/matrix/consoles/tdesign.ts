/**
 * TDesign Vue Next Starter. Source: Tencent/tdesign-vue-next-starter@0e13d9e. Its request layer is
 * utils/request around axios. Paths below are those of src.
 *
 * The starter signs in without a request (store/modules/user.ts:24-57) and makes up the user
 * (:58-74). The driver stands for a console whose two mocks were replaced by calls of its own request
 * layer: `POST /login {account, password}` → `{token}`, and `GET /user-info` → `{name, roles}`.
 */
import { AxiosError, axios, type AxiosRequest } from '../axios.ts'
import { ConsoleFault, Display, listOf, read, tableOf, text, textsOf } from '../display.ts'
import type { Driver, OpenConsole, Page, ShownUser } from '../driver.ts'

/** .env:4; with VITE_IS_REQUEST_PROXY=false the host is the console's own origin. */
const api = '/api'

/** store/modules/user.ts:80-87 */
const storageKey = 'user'

/** utils/request/index.ts:196-199; the second between two attempts is left out. */
const retries = 3

/** utils/request/index.ts:55: the message of the server is not read. */
const refusal = '请求接口错误, 错误码: '

export const tdesign: Driver = {
  name: 'tdesign',
  ownWords: { wrongPassword: refusal, refused: refusal },
  // layouts/components/Header.vue:140-145, permission.ts:73-80
  signsOutSilently: true,
  calls: {
    // api/list.ts:4-13
    list: { method: 'GET', path: `${api}/get-list` },
    save: { method: 'POST', path: `${api}/save` }
  },
  open: openTdesign
}

function openTdesign(page: Page): OpenConsole {
  const display = new Display()
  const client = new Requests(page)
  let menu: readonly string[] | undefined

  /** permission.ts:13-70, before each page */
  async function guard(): Promise<ShownUser | undefined> {
    if (!client.token) {
      display.at = 'sign-in'
      return undefined
    }
    try {
      const user = await client.request({ method: 'GET', url: '/user-info' })
      menu ??= await fetchMenu()
      display.at = 'inside'
      return { name: text(read(user, 'name')), roles: textsOf(read(user, 'roles')) }
    } catch (error) {
      if (!(error instanceof ConsoleFault)) throw error
      display.say(error.message)
      leave()
      return undefined
    }
  }

  /** store/modules/permission.ts:31-41 */
  async function fetchMenu(): Promise<readonly string[]> {
    try {
      const data = await client.request({ method: 'GET', url: '/get-menu-list-i18n' })
      return listOf(read(data, 'list')).map(route => text(read(route, 'path')))
    } catch (error) {
      throw error instanceof ConsoleFault ? new ConsoleFault("Can't build routes") : error
    }
  }

  /** permission.ts:73-80 and store/modules/user.ts:75-78: no request at all */
  function leave(): void {
    client.token = ''
    menu = undefined
    display.at = 'sign-in'
  }

  return {
    start: () => display.step(guard),
    // pages/login/components/Login.vue:136-150
    signIn: ({ username, password }) =>
      display.step(async () => {
        try {
          const data = { account: username, password }
          const login = await client.request({ method: 'POST', url: '/login', data })
          client.token = text(read(login, 'token'))
        } catch (error) {
          if (error instanceof ConsoleFault) display.say(error.message)
          throw error
        }
        return guard()
      }),
    menu: () =>
      display.step(async () => {
        await guard()
        return menu === undefined ? undefined : { entries: menu, permissions: [] }
      }),
    // pages/list/base/index.vue:161-175: nothing is shown of a refusal.
    list: (current, pageSize, title) =>
      display.step(async () => {
        if ((await guard()) === undefined) return undefined
        const params = { title, current, pageSize }
        const data = await client.request({ method: 'GET', url: '/get-list', params })
        return tableOf(read(data, 'list'), read(data, 'total'))
      }),
    // utils/request/index.ts:55: the page gets a message with a code, and no body.
    save: values =>
      display.step(async () => {
        try {
          await client.request({ method: 'POST', url: '/save', data: values })
          return { saved: true }
        } catch (error) {
          if (!(error instanceof ConsoleFault)) throw error
          display.say(error.message)
          return { saved: false }
        }
      }),
    // layouts/components/Header.vue:140-145
    signOut: () =>
      display.step(async () => {
        leave()
        return undefined
      })
  }
}

class Requests {
  readonly #page: Page

  constructor(page: Page) {
    this.#page = page
  }

  get token(): string {
    const stored: unknown = JSON.parse(this.#page.localStorage.getItem(storageKey) ?? '{}')
    return text(read(stored, 'token'))
  }

  set token(token: string) {
    this.#page.localStorage.setItem(storageKey, JSON.stringify({ token }))
  }

  /** utils/request/index.ts:19-57 and :128-151 */
  async request(request: AxiosRequest): Promise<unknown> {
    const { status, data } = await this.#send(request)
    if (status === 204 && request.method !== 'GET') return undefined
    if (!data) throw new ConsoleFault('请求接口错误')
    const code = read(data, 'code')
    if (code !== 0) throw new ConsoleFault(refusal + String(code))
    return read(data, 'data')
  }

  /** Every status beyond 2xx is tried again, whatever the method is. */
  async #send(request: AxiosRequest, attempt = 0): ReturnType<typeof axios> {
    // utils/request/index.ts:121-123 and :160: the token without a scheme
    const headers = { Authorization: this.token || null }
    // utils/request/index.ts:77-80
    const params = request.method === 'GET' ? { ...request.params, _t: this.#page.now() } : {}
    try {
      return await axios(this.#page, { ...request, url: `${api}${request.url}`, params, headers })
    } catch (error) {
      if (!(error instanceof AxiosError) || attempt === retries) throw error
      return this.#send(request, attempt + 1)
    }
  }
}
