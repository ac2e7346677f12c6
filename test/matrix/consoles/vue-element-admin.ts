/**
 * vue-element-admin. Source: PanJiaChen/vue-element-admin@6858a9a. Its request layer is the file
 * utils/request.js around axios. Paths below are those of src.
 */
import { AxiosError, axios, type AxiosRequest } from '../axios.ts'
import { ConsoleFault, Display, read, tableOf, text, textsOf } from '../display.ts'
import type { Driver, OpenConsole, Page, ShownUser } from '../driver.ts'

/** .env.production:5, with the folder that each path of api/*.js begins with */
const api = '/prod-api/vue-element-admin'

/** utils/auth.js:3 */
const tokenCookie = 'Admin-Token'

/** utils/request.js:49 and :57 */
const successCode = 20000
const endCodes: readonly unknown[] = [50008, 50012, 50014]

export const vueElementAdmin: Driver = {
  name: 'vue-element-admin',
  calls: {
    // api/article.js:3-9 and :27-33
    list: { method: 'GET', path: `${api}/article/list` },
    save: { method: 'POST', path: `${api}/article/create` }
  },
  open: openVueElementAdmin
}

function openVueElementAdmin(page: Page): OpenConsole {
  const display = new Display()
  const client = new Requests(page, display)

  /** permission.js:34-54 and store/modules/user.js:48-74, with a token */
  async function enter(): Promise<ShownUser | undefined> {
    try {
      // api/user.js:11-17: the token stands in the query too.
      const params = { token: page.cookies.get(tokenCookie) }
      const info = await client.request({ method: 'GET', url: '/user/info', params })
      if (!info) throw new ConsoleFault('Verification failed, please Login again.')
      const roles = textsOf(read(info, 'roles') || [])
      // store/modules/user.js:60-62
      if (roles.length === 0) throw new ConsoleFault('getInfo: roles must be a non-null array!')
      display.at = 'inside'
      return { name: text(read(info, 'name')), roles }
    } catch (error) {
      if (!(error instanceof ConsoleFault)) throw error
      page.cookies.remove(tokenCookie)
      display.say(error.message)
      display.at = 'sign-in'
      return undefined
    }
  }

  return {
    start: () =>
      display.step(async () => {
        if (page.cookies.get(tokenCookie)) return enter()
        display.at = 'sign-in'
        return undefined
      }),
    signIn: ({ username, password }) =>
      display.step(async () => {
        const data = { username: username.trim(), password }
        const login = await client.request({ method: 'POST', url: '/user/login', data })
        // js-cookie stores what is missing as the text "undefined".
        page.cookies.set(tokenCookie, String(read(login, 'token')))
        return page.cookies.get(tokenCookie) ? enter() : undefined
      }),
    // store/modules/permission.js: the menu is in the console, by roles
    menu: () => display.step(async () => ({ entries: [], permissions: [] })),
    // views/table/complex-table.vue:233-237 and its listQuery
    list: (currentPage, limit, title) =>
      display.step(async () => {
        const params = { title, page: currentPage, limit }
        const data = await client.request({ method: 'GET', url: '/article/list', params })
        return tableOf(read(data, 'items'), read(data, 'total'))
      }),
    // utils/request.js:69: the page gets a message, and no body.
    save: values =>
      display.save(() => client.request({ method: 'POST', url: '/article/create', data: values })),
    // layout/components/Navbar.vue:77-80: only a sign-out that succeeded leads to the sign-in page.
    signOut: () =>
      display.step(async () => {
        await client.request({ method: 'POST', url: '/user/logout' })
        page.cookies.remove(tokenCookie)
        display.at = 'sign-in'
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

  /** utils/request.js:14-83; the console's functions read `data` of what it hands on. */
  async request(request: AxiosRequest): Promise<unknown> {
    const headers = { 'X-Token': this.#page.cookies.get(tokenCookie) ?? null }
    const url = `${api}${request.url}`
    let body: unknown
    try {
      body = (await axios(this.#page, { ...request, url, headers })).data
    } catch (error) {
      // utils/request.js:74-81: the body is not read.
      if (error instanceof AxiosError) this.#display.say(error.message)
      throw error
    }
    const code = read(body, 'code')
    if (code === successCode) return read(body, 'data')
    const message = read(body, 'message') || 'Error'
    this.#display.say(message)
    // utils/request.js:57-68: the user presses "Re-Login", which sends nothing.
    if (endCodes.includes(code)) {
      this.#page.cookies.remove(tokenCookie)
      this.#display.at = 'sign-in'
    }
    throw new ConsoleFault(text(message))
  }
}
