/**
 * SoybeanAdmin. Source: soybeanjs/soybean-admin@9fc1be7. Its request layer is `@sa/axios`, a package
 * of its workspace that npm does not have. Paths below are those of src.
 */
import { AxiosError, axios, type AxiosRequest } from '../axios.ts'
import {
  ConsoleFault,
  Display,
  fieldErrorsOf,
  listOf,
  read,
  tableOf,
  text,
  textsOf
} from '../display.ts'
import type { Driver, OpenConsole, Page, ShownUser } from '../driver.ts'

/** The base URL is `VITE_SERVICE_BASE_URL` (.env.prod:2): here, the console's own origin. */
const api = ''

/** .env:32, :35, :38 and :41; compared with the code as text (service/request/index.ts:37 and :41). */
const successCode = '0000'
const signOutCodes = ['8888', '8889']
const modalCodes = ['7777', '7778']
const expiredCodes = ['9999', '9998', '3333']

/** service/api/auth.ts:30-38 */
const refreshUrl = '/auth/refreshToken'
const maxAttempts = 10

/** .env:50 */
const prefix = 'SOY_'

export const soybean: Driver = {
  name: 'soybean',
  // layouts/modules/global-header/components/user-avatar.vue:46-56
  signsOutSilently: true,
  calls: {
    // The starter has no list; its examples page by `current` and `size`.
    list: { method: 'GET', path: `${api}/systemManage/getUserList` },
    save: { method: 'POST', path: `${api}/systemManage/addUser` }
  },
  open: openSoybean
}

/** service/request/index.ts:13-128, packages/axios/src/index.ts:142-175 */
interface Flat {
  readonly data: unknown
  readonly error: AxiosError | null
}

function openSoybean(page: Page): OpenConsole {
  const display = new Display()
  const client = new Requests(page, display)

  /** store/modules/auth/index.ts:148-159 */
  async function fetchUser(): Promise<ShownUser | undefined> {
    const { data, error } = await client.request({ method: 'GET', url: '/auth/getUserInfo' })
    if (error !== null) return undefined
    // router/guard/route.ts:31 goes through the roles.
    return { name: text(read(data, 'userName')), roles: textsOf(read(data, 'roles')) }
  }

  return {
    start: () =>
      display.step(async () => {
        // router/guard/route.ts:87-107
        if (!client.stored('token')) {
          display.at = 'sign-in'
          return undefined
        }
        display.at = 'inside'
        // store/modules/auth/index.ts:161-172
        const user = await fetchUser()
        if (user === undefined) client.reset()
        return user
      }),
    signIn: ({ username, password }) =>
      display.step(async () => {
        // service/api/auth.ts:9-18: the member is `userName`.
        const data = { userName: username, password }
        const login = await client.request({ method: 'POST', url: '/auth/login', data })
        if (login.error !== null) {
          client.reset()
          return undefined
        }
        // store/modules/auth/index.ts:131-146 and router/guard/route.ts:27
        client.keep(login.data)
        const user = await fetchUser()
        if (user === undefined || !client.stored('token')) return undefined
        display.at = 'inside'
        return user
      }),
    // store/modules/route/index.ts:212-231, with VITE_AUTH_ROUTE_MODE=dynamic
    menu: () =>
      display.step(async () => {
        const { data, error } = await client.request({ method: 'GET', url: '/route/getUserRoutes' })
        if (error !== null) {
          client.reset()
          return undefined
        }
        const user = await client.request({ method: 'GET', url: '/auth/getUserInfo' })
        return {
          entries: listOf(read(data, 'routes')).map(route => text(read(route, 'name'))),
          permissions: textsOf(read(user.data, 'buttons'))
        }
      }),
    list: (current, size, title) =>
      display.step(async () => {
        const { data, error } = await client.request({
          method: 'GET',
          url: '/systemManage/getUserList',
          params: { title, current, size }
        })
        // typings/api/common.d.ts:9-21: `current`, `size`, `records`, `total`. The table takes its page
        // and its size from the answer (src/hooks/common/table.ts, `updatePagination`).
        if (error === null && (read(data, 'current') !== current || read(data, 'size') !== size)) {
          throw new ConsoleFault('the list is not of the page that was asked for')
        }
        return error === null ? tableOf(read(data, 'records'), read(data, 'total')) : undefined
      }),
    save: values =>
      display.step(async () => {
        const url = '/systemManage/addUser'
        const { error } = await client.request({ method: 'POST', url, data: values })
        if (error === null) return { saved: true }
        const errors = read(error.response?.data ?? {}, 'fieldErrors')
        return { saved: false, fieldErrors: fieldErrorsOf(errors) }
      }),
    refresh: () => display.step(() => client.refresh()),
    // layouts/modules/global-header/components/user-avatar.vue:46-56: no request at all.
    signOut: () =>
      display.step(async () => {
        client.reset()
        return undefined
      })
  }
}

class Requests {
  readonly #page: Page
  readonly #display: Display
  #refreshing: Promise<boolean> | undefined

  constructor(page: Page, display: Display) {
    this.#page = page
    this.#display = display
  }

  async request(request: AxiosRequest): Promise<Flat> {
    try {
      return { data: await this.#unwrapped(request), error: null }
    } catch (error) {
      if (error instanceof AxiosError) return { data: null, error }
      throw error
    }
  }

  /** packages/axios/src/index.ts:53-85; sends again after a refresh: service/request/index.ts:89-97 */
  async #unwrapped(request: AxiosRequest, attempt = 1): Promise<unknown> {
    const token = this.stored('token')
    const headers = { Authorization: token ? `Bearer ${text(token)}` : null }
    const url = `${api}${request.url}`
    let response
    try {
      response = await axios(this.#page, { ...request, url, headers })
    } catch (error) {
      // service/request/index.ts:104-111: the message of a body is shown under status 2xx only.
      if (error instanceof AxiosError) this.#display.say(error.message)
      throw error
    }
    const code = text(read(response.data, 'code'))
    if (code === successCode) return read(response.data, 'data')
    if (expiredCodes.includes(code)) {
      if (request.url === refreshUrl) throw new ConsoleFault('The refresh waits for itself.')
      if (attempt > maxAttempts) throw new ConsoleFault('The request is sent again for ever.')
      if (await this.refresh()) return this.#unwrapped(request, attempt + 1)
    }
    this.#fail(code, read(response.data, 'msg'))
    throw new AxiosError('the backend request error', response)
  }

  /** service/request/index.ts:54-84 and :101-126 */
  #fail(code: string, message: unknown): void {
    if (signOutCodes.includes(code)) this.reset()
    if (modalCodes.includes(code)) {
      this.#display.say(message)
      this.reset()
      return
    }
    if (!expiredCodes.includes(code)) this.#display.say(message || 'the backend request error')
  }

  /**
   * service/request/shared.ts:14-42: requests at the same time share one refresh. A refresh that is
   * refused by one of `expiredCodes` waits for itself (service/request/index.ts:87): here, a fault.
   */
  refresh(): Promise<boolean> {
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  async #refresh(): Promise<boolean> {
    const data = { refreshToken: this.stored('refreshToken') || '' }
    const { data: tokens, error } = await this.request({
      method: 'POST',
      url: refreshUrl,
      data
    })
    if (error !== null) {
      this.reset()
      return false
    }
    this.keep(tokens)
    return true
  }

  /** store/modules/auth/index.ts:131-134: localStorage, as JSON */
  keep(tokens: unknown): void {
    for (const name of ['token', 'refreshToken']) {
      this.#page.localStorage.setItem(prefix + name, JSON.stringify(read(tokens, name) ?? null))
    }
  }

  stored(name: string): unknown {
    return JSON.parse(this.#page.localStorage.getItem(prefix + name) ?? 'null')
  }

  /** store/modules/auth/index.ts:42-55 */
  reset(): void {
    this.#page.localStorage.removeItem(`${prefix}token`)
    this.#page.localStorage.removeItem(`${prefix}refreshToken`)
    this.#display.at = 'sign-in'
  }
}
