/**
 * vue-element-admin. Source: PanJiaChen/vue-element-admin@6858a9a. Its request layer is the file
 * utils/request.js around axios. Paths below are those of src.
 */
import { axios, type AxiosRequest, get, post } from '../axios.ts'
import {
  ConsoleFault,
  type Display,
  openConsole,
  orElse,
  type Parts,
  read,
  tableOf,
  text,
  textsOf
} from '../display.ts'
import type { Driver, Page } from '../driver.ts'

/** .env.production:5, with the folder that each path of api/*.js begins with */
const api = '/prod-api/vue-element-admin'

/** utils/auth.js:3 */
const tokenCookie = 'Admin-Token'

/** utils/request.js:49 and :57 */
const successCode = 20000
const endCodes: readonly unknown[] = [50008, 50012, 50014]

export const vueElementAdmin: Driver = {
  name: 'vue-element-admin',
  // api/article.js:3-9 and :27-33
  calls: { list: `${api}/article/list`, save: `${api}/article/create` },
  open: page => openConsole(display => partsOf(page, display))
}

function partsOf(page: Page, display: Display): Parts {
  const token = () => page.cookies.get(tokenCookie)
  const leave = () => {
    page.cookies.remove(tokenCookie)
    display.at = 'sign-in'
  }

  /** utils/request.js:14-83; the console's functions read `data` of what it hands on. */
  async function request(call: AxiosRequest): Promise<unknown> {
    const sent = { ...call, url: api + call.url, headers: { 'X-Token': token() ?? null } }
    // utils/request.js:74-81: the body is not read.
    const { data: body } = await axios(page, sent, ({ message }) => display.say(message))
    const code = read(body, 'code')
    if (code === successCode) return read(body, 'data')
    const message = read(body, 'message') || 'Error'
    display.say(message)
    // utils/request.js:57-68: the user presses "Re-Login", which sends nothing.
    if (endCodes.includes(code)) leave()
    throw new ConsoleFault(text(message))
  }

  /** permission.js:34-54 and store/modules/user.js:48-74, with a token */
  const enter = () =>
    orElse(
      async () => {
        // api/user.js:11-17: the token stands in the query too.
        const info = await request(get('/user/info', { token: token() }))
        if (!info) throw new ConsoleFault('Verification failed, please Login again.')
        const roles = textsOf(read(info, 'roles') || [])
        // store/modules/user.js:60-62
        if (roles.length === 0) throw new ConsoleFault('getInfo: roles must be a non-null array!')
        display.at = 'inside'
        return { name: text(read(info, 'name')), roles }
      },
      async ({ message }) => {
        display.say(message)
        leave()
        return undefined
      }
    )

  return {
    token,
    enter,
    signIn: async ({ username, password }) => {
      const login = await request(post('/user/login', { username: username.trim(), password }))
      // js-cookie stores what is missing as the text "undefined".
      page.cookies.set(tokenCookie, String(read(login, 'token')))
      return token() ? enter() : undefined
    },
    // store/modules/permission.js: the menu is in the console, by roles
    menu: async () => ({ entries: [], permissions: [] }),
    // views/table/complex-table.vue:233-237 and its listQuery
    list: async (currentPage, limit, title) => {
      const data = await request(get('/article/list', { title, page: currentPage, limit }))
      return tableOf(read(data, 'items'), read(data, 'total'))
    },
    // utils/request.js:69: the page gets a message, and no body.
    save: values => request(post('/article/create', values)),
    // layout/components/Navbar.vue:77-80: only a sign-out that succeeded leads to the sign-in page.
    signOut: async () => {
      await request(post('/user/logout'))
      leave()
    }
  }
}
