/**
 * vue-pure-admin. Source: pure-admin/vue-pure-admin@2ad835b. Its request layer is the file
 * utils/http/index.ts around axios; `@pureadmin/utils` on npm holds none. Paths below are those of
 * src.
 */
import { AxiosError, axios, type AxiosRequest } from '../axios.ts'
import { ConsoleFault, Display, fieldErrorsOf, read, tableOf, text, textsOf } from '../display.ts'
import type { Driver, OpenConsole, Page, ShownUser } from '../driver.ts'

/** utils/auth.ts:24-32 */
const tokenCookie = 'authorized-token'
const tabsCookie = 'multiple-tabs'
const userKey = 'user-info'

/** locales/zh-CN.yaml:230 and :248 */
const signInFailed = '登录失败'
const signInExpired = '登录已过期，请重新登录'

export const vuePureAdmin: Driver = {
  name: 'vue-pure-admin',
  ownWords: { wrongPassword: signInFailed },
  // utils/http/index.ts:80-106
  noticesEndBy: 'clock',
  // store/modules/user.ts:95-104
  signsOutSilently: true,
  calls: {
    // The example lists of the console are POST without a page (views/system/user/utils/hook.tsx:275).
    list: { method: 'GET', path: '/user' },
    save: { method: 'POST', path: '/user/add' }
  },
  open: openVuePureAdmin
}

function openVuePureAdmin(page: Page): OpenConsole {
  const display = new Display()
  const client = new Requests(page, display)

  /** layout/hooks/useNav.ts:50-54 */
  function shownUser(): ShownUser {
    const user = client.userInfo()
    return {
      name: text(read(user, 'nickname')) || text(read(user, 'username')),
      roles: textsOf(read(user, 'roles') ?? [])
    }
  }

  /**
   * router/utils.ts:201-236: the promise settles only when a body arrives under status 2xx; its
   * routes are used where `code` is 0.
   */
  async function initRouter(): Promise<readonly string[]> {
    const body = await client.request({ method: 'GET', url: '/get-async-routes' })
    if (read(body, 'code') !== 0) return []
    const data = read(body, 'data')
    if (!Array.isArray(data)) throw new ConsoleFault('routes are no list')
    return data.map(route => text(read(route, 'path')))
  }

  return {
    // router/index.ts:152 and :172-176: no request asks whether the session is still there.
    start: () =>
      display.step(async () => {
        if (!page.cookies.get(tabsCookie) || client.userInfo() === null) {
          client.removeToken()
          display.at = 'sign-in'
          return undefined
        }
        display.at = 'inside'
        await initRouter()
        return display.at === 'inside' ? shownUser() : undefined
      }),
    // views/login/index.vue:66-93 and store/modules/user.ts:79-94
    signIn: ({ username, password }) =>
      display.step(async () => {
        try {
          const data = { username, password }
          client.setToken(await client.tokens({ method: 'POST', url: '/login', data }))
        } catch (error) {
          if (error instanceof ConsoleFault) display.say(signInFailed)
          throw error
        }
        await initRouter()
        display.at = 'inside'
        return shownUser()
      }),
    menu: () =>
      display.step(async () => ({
        entries: await initRouter(),
        permissions: textsOf(read(client.userInfo(), 'permissions'))
      })),
    // views/system/user/utils/hook.tsx:275-281: nothing is shown of a refusal.
    list: (currentPage, pageSize, title) =>
      display.step(async () => {
        const params = { title, currentPage, pageSize }
        const body = await client.request({ method: 'GET', url: '/user', params })
        if (read(body, 'code') !== 0) return undefined
        const data = read(body, 'data')
        // Its table takes page and size from the answer: `pagination.pageSize = data.pageSize`.
        if (read(data, 'currentPage') !== currentPage || read(data, 'pageSize') !== pageSize) {
          throw new ConsoleFault('the list is not of the page that was asked for')
        }
        return tableOf(read(data, 'list'), read(data, 'total'))
      }),
    // The request layer hands on the whole body; the page shows its message.
    save: values =>
      display.step(async () => {
        const body = await client.request({ method: 'POST', url: '/user/add', data: values })
        if (read(body, 'code') === 0) return { saved: true }
        display.say(read(body, 'message'))
        return { saved: false, fieldErrors: fieldErrorsOf(read(body, 'fieldErrors')) }
      }),
    refresh: () =>
      display.step(async () => {
        await client.refresh()
        return display.at === 'inside'
      }),
    // store/modules/user.ts:96-104: no request at all
    signOut: () =>
      display.step(async () => {
        client.logOut()
        return undefined
      })
  }
}

class Requests {
  readonly #page: Page
  readonly #display: Display

  constructor(page: Page, display: Display) {
    this.#page = page
    this.#display = display
  }

  /** utils/http/index.ts:63-148: the whole body, whatever its code is; statuses beyond 2xx reject. */
  async request(request: AxiosRequest): Promise<unknown> {
    const token = this.#token()
    const expires = Number.parseInt(text(read(token ?? {}, 'expires')), 10)
    if (token !== null && expires - this.#page.now() <= 0) await this.refresh()
    const accessToken = read(this.#token() ?? {}, 'accessToken')
    const headers = {
      'X-Requested-With': 'XMLHttpRequest',
      'Authorization': token === null ? null : `Bearer ${text(accessToken)}`
    }
    return (await axios(this.#page, { ...request, headers })).data
  }

  /** store/modules/user.ts:79-94 and :106-121: sign-in and refresh go without a token. */
  async tokens(request: AxiosRequest): Promise<unknown> {
    const { data: body } = await axios(this.#page, request)
    if (read(body, 'code') === 0) return read(body, 'data')
    throw new ConsoleFault(text(read(body, 'message')))
  }

  /** utils/http/index.ts:87-104: after a refusal the requests that waited never end. */
  async refresh(): Promise<void> {
    const data = { refreshToken: read(this.#token() ?? {}, 'refreshToken') }
    try {
      this.setToken(await this.tokens({ method: 'POST', url: '/refresh-token', data }))
    } catch (error) {
      if (!(error instanceof ConsoleFault)) throw error
      this.logOut()
      this.#display.say(signInExpired)
      throw error instanceof AxiosError ? error : new ConsoleFault('The request never ends.')
    }
  }

  /** utils/auth.ts:48-116 */
  setToken(data: unknown): void {
    const [accessToken, refreshToken] = [read(data, 'accessToken'), read(data, 'refreshToken')]
    const expires = new Date(dateOf(read(data, 'expires'))).getTime()
    const cookie = JSON.stringify({ accessToken, expires, refreshToken })
    if (expires > 0) this.#page.cookies.set(tokenCookie, cookie, expires)
    else this.#page.cookies.set(tokenCookie, cookie)
    this.#page.cookies.set(tabsCookie, 'true')
    const named = read(data, 'username') && read(data, 'roles')
    const user = named ? data : (this.userInfo() ?? {})
    this.#page.localStorage.setItem(
      userKey,
      JSON.stringify({
        refreshToken,
        expires,
        username: read(user, 'username') ?? '',
        nickname: read(user, 'nickname') ?? '',
        roles: read(user, 'roles') ?? [],
        permissions: read(user, 'permissions') ?? []
      })
    )
  }

  /** utils/auth.ts:35-40: when the cookie has expired, what is left is the user without a token. */
  #token(): unknown {
    const cookie = this.#page.cookies.get(tokenCookie)
    return cookie ? JSON.parse(cookie) : this.userInfo()
  }

  userInfo(): unknown {
    return JSON.parse(this.#page.localStorage.getItem(userKey) ?? 'null')
  }

  /** utils/auth.ts:119-123 */
  removeToken(): void {
    this.#page.cookies.remove(tokenCookie)
    this.#page.cookies.remove(tabsCookie)
    this.#page.localStorage.removeItem(userKey)
  }

  logOut(): void {
    this.removeToken()
    this.#display.at = 'sign-in'
  }
}

/** What `new Date` takes. */
function dateOf(value: unknown): string | number {
  return typeof value === 'number' || typeof value === 'string' ? value : Number.NaN
}
