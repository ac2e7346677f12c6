/**
 * Vben Admin 5. Source: vbenjs/vue-vben-admin@e3369bd. Its request layer is `@vben/request`, a
 * package of its workspace that npm does not have. Paths below are those of apps/web-antd/src, and
 * of packages/effects/request/src/request-client.
 */
import { AxiosError, axios, type AxiosRequest, get, post } from '../axios.ts'
import {
  type Display,
  Layer,
  openConsole,
  orElse,
  type Parts,
  read,
  stored,
  tableOf,
  text,
  textsOf,
  titlesOf
} from '../display.ts'
import type { Driver, Page } from '../driver.ts'

/** apps/web-antd/.env.development:7; the production file has a host of its own there. */
const api = '/api'

interface Access {
  readonly accessToken: unknown
  readonly accessCodes: readonly string[]
}

const nobody: Access = { accessToken: null, accessCodes: [] }

export const vben: Driver = {
  name: 'vben',
  // apps/backend-mock/api/table/list.ts and api/system/dept/.post.ts
  calls: { list: `${api}/table/list`, save: `${api}/system/dept` },
  open: page => openConsole(display => partsOf(page, display, false))
}

/** With `preferences.app.enableRefreshToken`, which is off by default. */
export const vbenRefreshing: Driver = {
  ...vben,
  open: page => openConsole(display => partsOf(page, display, true))
}

function partsOf(page: Page, display: Display, enableRefreshToken: boolean): Parts {
  const client = new RequestClient(page, display)
  client.enableRefreshToken = enableRefreshToken

  async function fetchUser() {
    const info = await client.request(get('/user/info'))
    // router/guard.ts:96
    return { name: text(read(info, 'realName')), roles: textsOf(read(info, 'roles') ?? []) }
  }

  return {
    // router/guard.ts:66-86
    token: () => client.access.accessToken,
    enter: async () => {
      const user = await fetchUser()
      display.at = 'inside'
      return user
    },
    signIn: async ({ username, password }) => {
      const result = await client.request(post('/auth/login', { username, password }))
      // store/auth.ts:36-39: without a truthy token nothing happens at all.
      const accessToken = read(result, 'accessToken')
      if (!accessToken) return undefined
      client.access = { ...client.access, accessToken }
      // store/auth.ts:43-46
      const codes = client.request(get('/auth/codes'))
      const [user, accessCodes] = await Promise.all([fetchUser(), codes])
      client.access = { accessToken, accessCodes: textsOf(accessCodes) }
      display.at = 'inside'
      return user
    },
    // api/core/menu.ts:9, with `accessMode: backend`
    menu: async () => {
      const entries = titlesOf(await client.request(get('/menu/all')))
      return { entries, permissions: client.access.accessCodes }
    },
    // apps/backend-mock/api/table/list.ts: `page`, `pageSize`; utils/response.ts:20-25: `items`, `total`
    list: async (at, pageSize, title) => {
      const data = await client.request(get('/table/list', { title, page: at, pageSize }))
      return tableOf(read(data, 'items'), read(data, 'total'))
    },
    save: values => client.request(post('/system/dept', values)),
    // request-client.ts:159: the page catches the body.
    fieldErrors: error =>
      read((error instanceof AxiosError && error.response?.data) || {}, 'fieldErrors'),
    ...(enableRefreshToken && {
      refresh: async () => {
        await client.refresh()
        return Boolean(client.access.accessToken)
      }
    }),
    signOut: () => client.logout()
  }
}

class RequestClient extends Layer {
  /** packages/stores/src/modules/access.ts:51 and :102-111: what survives a reload. */
  readonly #stored = stored(this.page)
  enableRefreshToken = false

  get access(): Access {
    return (this.#stored.get('core-access') ?? nobody) as Access
  }

  set access(access: Access) {
    this.#stored.set('core-access', access)
  }

  /** The interceptors in their order: api/request.ts:64-104. */
  request(call: AxiosRequest, isRetry = false): Promise<unknown> {
    return orElse(
      () => this.#authenticated(call, isRetry),
      async error => {
        if (error instanceof AxiosError) this.#say(error)
        throw error
      }
    )
  }

  /** preset-interceptors.ts:61-108 */
  async #authenticated(call: AxiosRequest, isRetry: boolean): Promise<unknown> {
    try {
      return await this.#unwrapped(call)
    } catch (error) {
      if (!(error instanceof AxiosError) || error.response?.status !== 401) throw error
      try {
        if (!this.enableRefreshToken || isRetry) throw error
        await this.refresh()
      } catch (refreshError) {
        // api/request.ts:33-46, with `loginExpiredMode: page`
        this.access = { ...this.access, accessToken: null }
        await this.logout()
        throw refreshError
      }
      return this.request(call, true)
    }
  }

  /** preset-interceptors.ts:22-43, with api/request.ts:76-80: `code === 0`, nothing else. */
  async #unwrapped(call: AxiosRequest): Promise<unknown> {
    const { accessToken } = this.access
    const headers = { Authorization: accessToken ? `Bearer ${text(accessToken)}` : null }
    const response = await axios(this.page, { ...call, url: api + call.url, headers })
    if (read(response.data, 'code') === 0) return read(response.data, 'data')
    throw new AxiosError('[object Object]', response)
  }

  /** api/request.ts:96-103 and preset-interceptors.ts:121-161 */
  #say(error: AxiosError): void {
    const body = error.response?.data ?? {}
    const message = read(body, 'error') ?? read(body, 'message') ?? ''
    this.display.say(message || `(words for status ${error.response?.status ?? 'network'})`)
  }

  /**
   * api/core/auth.ts:31-35 and api/request.ts:51-57: the base client reads no envelope, so the whole
   * body is the token.
   */
  async refresh(): Promise<void> {
    const call = post(`${api}/auth/refresh`, { withCredentials: true })
    const { data: accessToken } = await axios(this.page, call)
    this.access = { ...this.access, accessToken }
  }

  /** store/auth.ts:80-98 and api/core/auth.ts:40-44: whatever the response is. */
  async logout(): Promise<void> {
    const call = post(`${api}/auth/logout`, { withCredentials: true })
    await orElse<unknown>(
      () => axios(this.page, call),
      async () => {}
    )
    this.access = nobody
    this.display.at = 'sign-in'
  }
}
