/**
 * Arco Design Pro Vue. Source: arco-design/arco-design-pro-vue@2702081. Its request layer is the file
 * api/interceptor.ts around axios. Paths below are those of arco-design-pro-vite/src.
 */
import { AxiosError, axios, type AxiosRequest } from '../axios.ts'
import { ConsoleFault, Display, listOf, read, tableOf, text } from '../display.ts'
import type { Driver, OpenConsole, Page, ShownUser } from '../driver.ts'

/** utils/auth.ts:1 */
const tokenKey = 'token'

/** api/interceptor.ts:43 and :50 */
const successCode = 20000
const endCodes: readonly unknown[] = [50008, 50012, 50014]

export const arco: Driver = {
  name: 'arco',
  calls: {
    // api/list.ts:26-33; .env.production is empty: the console's own origin
    list: { method: 'GET', path: '/api/list/policy' },
    // The sample form of the console ends without a request: a path in the fashion of its others.
    save: { method: 'POST', path: '/api/list/policy' }
  },
  open: openArco
}

function openArco(page: Page): OpenConsole {
  const display = new Display()
  const client = new Requests(page, display)

  /** store/modules/user/index.ts:57-61 and router/guard/userLoginInfo.ts:11-28, with a token */
  async function enter(): Promise<ShownUser | undefined> {
    try {
      const info = await client.request({ method: 'POST', url: '/api/user/info' })
      display.at = 'inside'
      const role = text(read(info, 'role'))
      return { name: text(read(info, 'name')), roles: role === '' ? [] : [role] }
    } catch (error) {
      if (!(error instanceof ConsoleFault)) throw error
      // Where the sign-out is refused too, the guard never calls `next`: the page stays empty.
      display.at = 'inside'
      await client.signOut()
      display.at = 'sign-in'
      return undefined
    }
  }

  return {
    start: () =>
      display.step(async () => {
        if (page.localStorage.getItem(tokenKey)) return enter()
        display.at = 'sign-in'
        return undefined
      }),
    signIn: ({ username, password }) =>
      display.step(async () => {
        try {
          const data = { username, password }
          const login = await client.request({ method: 'POST', url: '/api/user/login', data })
          // store/modules/user/index.ts:67 and localStorage: what is missing becomes a text.
          page.localStorage.setItem(tokenKey, stringOf(read(login, 'token')))
        } catch (error) {
          // store/modules/user/index.ts:68-71; the form shows the message too, and so does a toast
          page.localStorage.removeItem(tokenKey)
          throw error
        }
        // router/guard/userLoginInfo.ts:11: an empty text is no token.
        return page.localStorage.getItem(tokenKey) ? enter() : undefined
      }),
    // store/modules/app/index.ts:47-70, with `menuFromServer`
    menu: () =>
      display.step(async () => {
        const menu = await client.request({ method: 'POST', url: '/api/user/menu' })
        const entries = listOf(menu).map(entry => text(read(entry, 'name')))
        return { entries, permissions: [] }
      }),
    list: (current, pageSize, title) =>
      display.step(async () => {
        const params = { title, current, pageSize }
        const data = await client.request({ method: 'GET', url: '/api/list/policy', params })
        return tableOf(read(data, 'list'), read(data, 'total'))
      }),
    // api/interceptor.ts:66: the page gets a message, and no body.
    save: values =>
      display.save(() => client.request({ method: 'POST', url: '/api/list/policy', data: values })),
    // hooks/user.ts:9-20: only a sign-out that succeeded leads to the sign-in page.
    signOut: () =>
      display.step(async () => {
        await client.signOut()
        display.at = 'sign-in'
        return undefined
      })
  }
}

function stringOf(value: unknown): string {
  if (value === undefined) return 'undefined'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

class Requests {
  readonly #page: Page
  readonly #display: Display

  constructor(page: Page, display: Display) {
    this.#page = page
    this.#display = display
  }

  /** api/interceptor.ts:18-77; the console's functions read `data` of what it hands on. */
  async request(request: AxiosRequest): Promise<unknown> {
    const token = this.#page.localStorage.getItem(tokenKey)
    const headers = { Authorization: token ? `Bearer ${token}` : null }
    let body: unknown
    try {
      body = (await axios(this.#page, { ...request, headers })).data
    } catch (error) {
      // api/interceptor.ts:70-76: errors of axios have no `msg`.
      if (error instanceof AxiosError) this.#display.say('Request Error')
      throw error
    }
    const code = read(body, 'code')
    if (code === successCode) return read(body, 'data')
    const message = read(body, 'msg') || 'Error'
    this.#display.say(message)
    const asksAgain = endCodes.includes(code) && request.url !== '/api/user/info'
    // A sign-out that is refused with such a code opens the same dialog: the user gives up.
    if (asksAgain && request.url !== '/api/user/logout') await this.#signInAgain()
    throw new ConsoleFault(text(message))
  }

  /** api/interceptor.ts:53-64: the user presses "Re-Login". */
  async #signInAgain(): Promise<void> {
    await this.signOut()
    this.#display.at = 'sign-in'
  }

  /** store/modules/user/index.ts:73-87: the token goes, whatever the response is. */
  async signOut(): Promise<void> {
    try {
      await this.request({ method: 'POST', url: '/api/user/logout' })
    } finally {
      this.#page.localStorage.removeItem(tokenKey)
    }
  }
}
