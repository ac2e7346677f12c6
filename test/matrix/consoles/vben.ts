/**
 * Vben Admin 5. Source: vbenjs/vue-vben-admin@e3369bd. Its request layer is `@vben/request`, a
 * package of its workspace that npm does not have. Paths below are those of apps/web-antd/src, and
 * of packages/effects/request/src/request-client.
 */
import { AxiosError, axios, type AxiosRequest } from '../axios.ts'
import { ConsoleFault, Display, fieldErrorsOf, read, tableOf, text, textsOf } from '../display.ts'
import type { Driver, OpenConsole, Page, ShownUser } from '../driver.ts'

/** apps/web-antd/.env.development:7; the production file has a host of its own there. */
const api = '/api'

/** packages/stores/src/modules/access.ts:51 and :102-111: what survives a reload. */
const storageKey = 'core-access'

interface Access {
  readonly accessToken: unknown
  readonly accessCodes: readonly string[]
}

const nobody: Access = { accessToken: null, accessCodes: [] }

export const vben: Driver = {
  name: 'vben',
  calls: {
    // apps/backend-mock/api/table/list.ts
    list: { method: 'GET', path: `${api}/table/list` },
    // apps/backend-mock/api/system/dept/.post.ts
    save: { method: 'POST', path: `${api}/system/dept` }
  },
  open: page => openVben(page, { enableRefreshToken: false })
}

/** With `preferences.app.enableRefreshToken`, which is off by default. */
export const vbenRefreshing: Driver = {
  ...vben,
  name: 'vben (enableRefreshToken)',
  open: page => openVben(page, { enableRefreshToken: true })
}

function openVben(page: Page, options: { enableRefreshToken: boolean }): OpenConsole {
  const display = new Display()
  const client = new RequestClient(page, display, options)

  async function fetchUser(): Promise<ShownUser> {
    const info = await client.request({ method: 'GET', url: '/user/info' })
    // router/guard.ts:96
    return {
      name: text(read(info, 'realName')),
      roles: textsOf(read(info, 'roles') ?? [])
    }
  }

  return {
    start: () =>
      display.step(async () => {
        // router/guard.ts:66-86
        if (!client.access.accessToken) {
          display.at = 'sign-in'
          return undefined
        }
        const user = await fetchUser()
        display.at = 'inside'
        return user
      }),
    signIn: ({ username, password }) =>
      display.step(async () => {
        const result = await client.request({
          method: 'POST',
          url: '/auth/login',
          data: { username, password }
        })
        // store/auth.ts:36-39: without a truthy token nothing happens at all.
        const accessToken = read(result, 'accessToken')
        if (!accessToken) return undefined
        client.access = { ...client.access, accessToken }
        // store/auth.ts:43-46
        const [user, accessCodes] = await Promise.all([
          fetchUser(),
          client.request({ method: 'GET', url: '/auth/codes' })
        ])
        client.access = { accessToken, accessCodes: textsOf(accessCodes) }
        display.at = 'inside'
        return user
      }),
    // api/core/menu.ts:9, with `accessMode: backend`
    menu: () =>
      display.step(async () => {
        const menus = await client.request({ method: 'GET', url: '/menu/all' })
        return {
          entries: menuTitles(menus),
          permissions: client.access.accessCodes
        }
      }),
    // apps/backend-mock/api/table/list.ts: `page`, `pageSize`; utils/response.ts:20-25: `items`, `total`
    list: (page, pageSize, title) =>
      display.step(async () => {
        const params = { title, page, pageSize }
        const data = await client.request({ method: 'GET', url: '/table/list', params })
        return tableOf(read(data, 'items'), read(data, 'total'))
      }),
    save: values =>
      display.step(async () => {
        try {
          await client.request({ method: 'POST', url: '/system/dept', data: values })
          return { saved: true }
        } catch (error) {
          // request-client.ts:159: the page catches the body.
          const body = error instanceof AxiosError ? error.response?.data : undefined
          return { saved: false, fieldErrors: fieldErrorsOf(read(body ?? {}, 'fieldErrors')) }
        }
      }),
    ...(options.enableRefreshToken && {
      refresh: () =>
        display.step(async () => {
          await client.refresh()
          return Boolean(client.access.accessToken)
        })
    }),
    signOut: () =>
      display.step(async () => {
        await client.logout()
        return undefined
      })
  }
}

function menuTitles(menus: unknown): readonly string[] {
  if (!Array.isArray(menus)) throw new ConsoleFault('menus.map is not a function')
  return menus.map(menu => text(read(menu, 'meta', 'title')))
}

class RequestClient {
  readonly #page: Page
  readonly #display: Display
  readonly #enableRefreshToken: boolean

  constructor(page: Page, display: Display, options: { enableRefreshToken: boolean }) {
    this.#page = page
    this.#display = display
    this.#enableRefreshToken = options.enableRefreshToken
  }

  get access(): Access {
    const stored = this.#page.localStorage.getItem(storageKey)
    return stored === null ? nobody : (JSON.parse(stored) as Access)
  }

  set access(access: Access) {
    this.#page.localStorage.setItem(storageKey, JSON.stringify(access))
  }

  /** The interceptors in their order: api/request.ts:64-104. */
  async request(request: AxiosRequest, isRetry = false): Promise<unknown> {
    try {
      return await this.#authenticated(request, isRetry)
    } catch (error) {
      if (error instanceof AxiosError) this.#say(error)
      throw error
    }
  }

  /** preset-interceptors.ts:61-108 */
  async #authenticated(request: AxiosRequest, isRetry: boolean): Promise<unknown> {
    try {
      return await this.#unwrapped(request)
    } catch (error) {
      if (!(error instanceof AxiosError) || error.response?.status !== 401) throw error
      if (!this.#enableRefreshToken || isRetry) {
        await this.#reauthenticate()
        throw error
      }
      try {
        await this.refresh()
      } catch (refreshError) {
        await this.#reauthenticate()
        throw refreshError
      }
      return this.request(request, true)
    }
  }

  /** preset-interceptors.ts:22-43, with api/request.ts:76-80: `code === 0`, nothing else. */
  async #unwrapped(request: AxiosRequest): Promise<unknown> {
    const { accessToken } = this.access
    const headers = { Authorization: accessToken ? `Bearer ${text(accessToken)}` : null }
    const url = `${api}${request.url}`
    const response = await axios(this.#page, { ...request, url, headers })
    if (read(response.data, 'code') === 0) return read(response.data, 'data')
    throw new AxiosError('[object Object]', response)
  }

  /** api/request.ts:96-103 and preset-interceptors.ts:121-161 */
  #say(error: AxiosError): void {
    const body = error.response?.data ?? {}
    const message = read(body, 'error') ?? read(body, 'message') ?? ''
    this.#display.say(message || `(words for status ${error.response?.status ?? 'network'})`)
  }

  /**
   * api/core/auth.ts:31-35 and api/request.ts:51-57: the base client reads no envelope, so the whole
   * body is the token.
   */
  async refresh(): Promise<void> {
    const data = { withCredentials: true }
    const response = await axios(this.#page, { method: 'POST', url: `${api}/auth/refresh`, data })
    this.access = { ...this.access, accessToken: response.data }
  }

  /** api/request.ts:33-46, with `loginExpiredMode: page` */
  async #reauthenticate(): Promise<void> {
    this.access = { ...this.access, accessToken: null }
    await this.logout()
  }

  /** store/auth.ts:80-98 and api/core/auth.ts:40-44: whatever the response is. */
  async logout(): Promise<void> {
    const data = { withCredentials: true }
    try {
      await axios(this.#page, { method: 'POST', url: `${api}/auth/logout`, data })
    } catch (error) {
      if (!(error instanceof AxiosError)) throw error
    }
    this.access = nobody
    this.#display.at = 'sign-in'
  }
}
