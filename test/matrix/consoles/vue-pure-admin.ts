/**
 * vue-pure-admin. Source: pure-admin/vue-pure-admin@2ad835b. Its request layer is the file
 * utils/http/index.ts around axios; `@pureadmin/utils` on npm holds none. Paths below are those of
 * src.
 */
import { AxiosError, axios, type AxiosRequest, get, post } from '../axios.ts'
import {
  ConsoleFault,
  type Display,
  keepsPlace,
  listOf,
  Layer,
  openConsole,
  orElse,
  type Parts,
  read,
  tableOf,
  text,
  textsOf
} from '../display.ts'
import type { Driver, Page, ShownUser } from '../driver.ts'

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
  // The example lists of the console are POST without a page (views/system/user/utils/hook.tsx:275).
  calls: { list: '/user', save: '/user/add' },
  open: page => openConsole(display => partsOf(page, display))
}

function partsOf(page: Page, display: Display): Parts {
  const client = new Requests(page, display)
  let refused: unknown

  /**
   * router/utils.ts:201-236: the promise settles only when a body arrives under status 2xx; its
   * routes are used where `code` is 0.
   */
  async function initRouter(): Promise<readonly string[]> {
    const body = await client.request(get('/get-async-routes'))
    if (read(body, 'code') !== 0) return []
    return listOf(read(body, 'data')).map(route => text(read(route, 'path')))
  }

  return {
    // router/index.ts:152 and :172-176: no request asks whether the session is still there.
    token: () => {
      const isKnown = page.cookies.get(tabsCookie) && client.userInfo() !== null
      if (!isKnown) client.logOut()
      return isKnown
    },
    enter: async () => {
      display.at = 'inside'
      await initRouter()
      return shownOf(client.userInfo())
    },
    // views/login/index.vue:66-93 and store/modules/user.ts:79-94
    signIn: async ({ username, password }) => {
      await orElse(
        async () => client.setToken(await client.tokens(post('/login', { username, password }))),
        async error => {
          display.say(signInFailed)
          throw error
        }
      )
      await initRouter()
      display.at = 'inside'
      return shownOf(client.userInfo())
    },
    menu: async () => ({
      entries: await initRouter(),
      permissions: textsOf(read(client.userInfo(), 'permissions'))
    }),
    // views/system/user/utils/hook.tsx:275-281: nothing is shown of a refusal.
    list: async (currentPage, pageSize, title) => {
      const body = await client.request(get('/user', { title, currentPage, pageSize }))
      if (read(body, 'code') !== 0) return undefined
      const data = read(body, 'data')
      // Its table takes page and size from the answer: `pagination.pageSize = data.pageSize`.
      keepsPlace([read(data, 'currentPage'), read(data, 'pageSize')], [currentPage, pageSize])
      return tableOf(read(data, 'list'), read(data, 'total'))
    },
    // The request layer hands on the whole body; the page shows its message.
    save: async values => {
      refused = undefined
      refused = await client.request(post('/user/add', values))
      if (read(refused, 'code') === 0) return
      display.say(read(refused, 'message'))
      throw new ConsoleFault('not saved')
    },
    fieldErrors: () => read(refused ?? {}, 'fieldErrors'),
    refresh: async () => {
      await client.refresh()
      return display.at === 'inside'
    },
    // store/modules/user.ts:96-104: no request at all
    signOut: async () => client.logOut()
  }
}

/** layout/hooks/useNav.ts:50-54 */
function shownOf(user: unknown): ShownUser {
  const name = text(read(user, 'nickname')) || text(read(user, 'username'))
  return { name, roles: textsOf(read(user, 'roles') ?? []) }
}

class Requests extends Layer {
  /** utils/http/index.ts:63-148: the whole body, whatever its code is; statuses beyond 2xx reject. */
  async request(call: AxiosRequest): Promise<unknown> {
    const token = this.#token()
    const expires = Number.parseInt(text(read(token ?? {}, 'expires')), 10)
    if (token !== null && expires - this.page.now() <= 0) await this.refresh()
    const accessToken = read(this.#token() ?? {}, 'accessToken')
    const headers = {
      'X-Requested-With': 'XMLHttpRequest',
      'Authorization': token === null ? null : `Bearer ${text(accessToken)}`
    }
    return (await axios(this.page, { ...call, headers })).data
  }

  /** store/modules/user.ts:79-94 and :106-121: sign-in and refresh go without a token. */
  async tokens(call: AxiosRequest): Promise<unknown> {
    const { data: body } = await axios(this.page, call)
    if (read(body, 'code') === 0) return read(body, 'data')
    throw new ConsoleFault(text(read(body, 'message')))
  }

  /** utils/http/index.ts:87-104: after a refusal the requests that waited never end. */
  refresh(): Promise<void> {
    const data = { refreshToken: read(this.#token() ?? {}, 'refreshToken') }
    return orElse(
      async () => this.setToken(await this.tokens(post('/refresh-token', data))),
      async error => {
        this.logOut()
        this.display.say(signInExpired)
        throw error instanceof AxiosError ? error : new ConsoleFault('The request never ends.')
      }
    )
  }

  /** utils/auth.ts:48-116 */
  setToken(data: unknown): void {
    const [accessToken, refreshToken] = [read(data, 'accessToken'), read(data, 'refreshToken')]
    const expires = new Date(dateOf(read(data, 'expires'))).getTime()
    const cookie = JSON.stringify({ accessToken, expires, refreshToken })
    if (expires > 0) this.page.cookies.set(tokenCookie, cookie, expires)
    else this.page.cookies.set(tokenCookie, cookie)
    this.page.cookies.set(tabsCookie, 'true')
    const named = read(data, 'username') && read(data, 'roles')
    const user = named ? data : (this.userInfo() ?? {})
    const kept = {
      refreshToken,
      expires,
      username: read(user, 'username') ?? '',
      nickname: read(user, 'nickname') ?? '',
      roles: read(user, 'roles') ?? [],
      permissions: read(user, 'permissions') ?? []
    }
    this.page.localStorage.setItem(userKey, JSON.stringify(kept))
  }

  /** utils/auth.ts:35-40: when the cookie has expired, what is left is the user without a token. */
  #token(): unknown {
    const cookie = this.page.cookies.get(tokenCookie)
    return cookie ? JSON.parse(cookie) : this.userInfo()
  }

  userInfo(): unknown {
    return JSON.parse(this.page.localStorage.getItem(userKey) ?? 'null')
  }

  /** utils/auth.ts:119-123 */
  logOut(): void {
    this.page.cookies.remove(tokenCookie)
    this.page.cookies.remove(tabsCookie)
    this.page.localStorage.removeItem(userKey)
    this.display.at = 'sign-in'
  }
}

/** What `new Date` takes. */
function dateOf(value: unknown): string | number {
  return typeof value === 'number' || typeof value === 'string' ? value : Number.NaN
}
