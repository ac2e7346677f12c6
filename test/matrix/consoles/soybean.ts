/**
 * SoybeanAdmin. Source: soybeanjs/soybean-admin@9fc1be7. Its request layer is `@sa/axios`, a package
 * of its workspace that npm does not have. Paths below are those of src.
 */
import { AxiosError, axios, type AxiosRequest, get, post } from '../axios.ts'
import {
  ConsoleFault,
  type Display,
  keepsPlace,
  listOf,
  Layer,
  openConsole,
  type Parts,
  read,
  stored,
  tableOf,
  text,
  textsOf
} from '../display.ts'
import type { Driver, Page, ShownUser } from '../driver.ts'

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
  // `VITE_SERVICE_BASE_URL` (.env.prod:2) is the console's own origin here. The starter has no list;
  // its examples page by `current` and `size`.
  calls: { list: '/systemManage/getUserList', save: '/systemManage/addUser' },
  open: page => openConsole(display => partsOf(page, display))
}

function partsOf(page: Page, display: Display): Parts {
  const client = new Requests(page, display)

  /** store/modules/auth/index.ts:148-159 */
  async function fetchUser(): Promise<ShownUser | undefined> {
    const { data, error } = await client.request(get('/auth/getUserInfo'))
    if (error !== null) return undefined
    // router/guard/route.ts:31 goes through the roles.
    return { name: text(read(data, 'userName')), roles: textsOf(read(data, 'roles')) }
  }

  return {
    // router/guard/route.ts:87-107
    token: () => client.store.get('token'),
    // store/modules/auth/index.ts:161-172
    enter: async () => {
      display.at = 'inside'
      const user = await fetchUser()
      if (user === undefined) client.reset()
      return user
    },
    signIn: async ({ username, password }) => {
      // service/api/auth.ts:9-18: the member is `userName`.
      const login = await client.request(post('/auth/login', { userName: username, password }))
      if (login.error !== null) return client.reset()
      // store/modules/auth/index.ts:131-146 and router/guard/route.ts:27
      client.keep(login.data)
      const user = await fetchUser()
      if (user === undefined || !client.store.get('token')) return undefined
      display.at = 'inside'
      return user
    },
    // store/modules/route/index.ts:212-231, with VITE_AUTH_ROUTE_MODE=dynamic
    menu: async () => {
      const { data, error } = await client.request(get('/route/getUserRoutes'))
      if (error !== null) return client.reset()
      const user = await client.request(get('/auth/getUserInfo'))
      const routes = listOf(read(data, 'routes'))
      return {
        entries: routes.map(route => text(read(route, 'name'))),
        permissions: textsOf(read(user.data, 'buttons'))
      }
    },
    list: async (current, size, title) => {
      const call = get('/systemManage/getUserList', { title, current, size })
      const { data, error } = await client.request(call)
      if (error !== null) return undefined
      // typings/api/common.d.ts:9-21; the table takes its page and its size from the answer
      // (src/hooks/common/table.ts, `updatePagination`).
      keepsPlace([read(data, 'current'), read(data, 'size')], [current, size])
      return tableOf(read(data, 'records'), read(data, 'total'))
    },
    save: async values => {
      const { error } = await client.request(post('/systemManage/addUser', values))
      if (error !== null) throw error
    },
    fieldErrors: error =>
      read((error instanceof AxiosError && error.response?.data) || {}, 'fieldErrors'),
    refresh: () => client.refresh(),
    // layouts/modules/global-header/components/user-avatar.vue:46-56: no request at all.
    signOut: async () => client.reset()
  }
}

/** service/request/index.ts:13-128, packages/axios/src/index.ts:142-175 */
interface Flat {
  readonly data: unknown
  readonly error: AxiosError | null
}

class Requests extends Layer {
  readonly store = stored(this.page, prefix)
  #refreshing: Promise<boolean> | undefined

  async request(call: AxiosRequest): Promise<Flat> {
    try {
      return { data: await this.#unwrapped(call), error: null }
    } catch (error) {
      if (error instanceof AxiosError) return { data: null, error }
      throw error
    }
  }

  /** packages/axios/src/index.ts:53-85; sends again after a refresh: service/request/index.ts:89-97 */
  async #unwrapped(call: AxiosRequest, attempt = 1): Promise<unknown> {
    const token = this.store.get('token')
    const headers = { Authorization: token ? `Bearer ${text(token)}` : null }
    // service/request/index.ts:104-111: the message of a body is shown under status 2xx only.
    const response = await axios(this.page, { ...call, headers }, ({ message }) =>
      this.display.say(message)
    )
    const code = text(read(response.data, 'code'))
    if (code === successCode) return read(response.data, 'data')
    if (expiredCodes.includes(code)) {
      if (call.url === refreshUrl) throw new ConsoleFault('The refresh waits for itself.')
      if (attempt > maxAttempts) throw new ConsoleFault('The request is sent again for ever.')
      if (await this.refresh()) return this.#unwrapped(call, attempt + 1)
    }
    this.#fail(code, read(response.data, 'msg'))
    throw new AxiosError('the backend request error', response)
  }

  /** service/request/index.ts:54-84 and :101-126 */
  #fail(code: string, message: unknown): void {
    const isModal = modalCodes.includes(code)
    if (signOutCodes.includes(code) || isModal) this.reset()
    if (isModal) this.display.say(message)
    else if (!expiredCodes.includes(code)) {
      this.display.say(message || 'the backend request error')
    }
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
    const call = post(refreshUrl, { refreshToken: this.store.get('refreshToken') || '' })
    const { data: tokens, error } = await this.request(call)
    if (error === null) this.keep(tokens)
    else this.reset()
    return error === null
  }

  /** store/modules/auth/index.ts:131-134: localStorage, as JSON */
  keep(tokens: unknown): void {
    for (const name of ['token', 'refreshToken']) this.store.set(name, read(tokens, name))
  }

  /** store/modules/auth/index.ts:42-55 */
  reset(): undefined {
    for (const name of ['token', 'refreshToken']) this.store.set(name, undefined)
    this.display.at = 'sign-in'
  }
}
