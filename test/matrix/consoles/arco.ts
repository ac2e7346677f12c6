/**
 * Arco Design Pro Vue. Source: arco-design/arco-design-pro-vue@2702081. Its request layer is the file
 * api/interceptor.ts around axios. Paths below are those of arco-design-pro-vite/src.
 */
import { axios, type AxiosRequest, get, post } from '../axios.ts'
import {
  ConsoleFault,
  type Display,
  listOf,
  openConsole,
  orElse,
  type Parts,
  read,
  tableOf,
  text
} from '../display.ts'
import type { Driver, Page } from '../driver.ts'

/** utils/auth.ts:1 */
const tokenKey = 'token'

/** api/interceptor.ts:43 and :50 */
const successCode = 20000
const endCodes: readonly unknown[] = [50008, 50012, 50014]

export const arco: Driver = {
  name: 'arco',
  // api/list.ts:26-33; .env.production is empty: the console's own origin. Its sample form ends without
  // a request: a path in the fashion of its others.
  calls: { list: '/api/list/policy', save: '/api/list/policy' },
  open: page => openConsole(display => partsOf(page, display))
}

function partsOf(page: Page, display: Display): Parts {
  const token = () => page.localStorage.getItem(tokenKey)

  /** api/interceptor.ts:18-77; the console's functions read `data` of what it hands on. */
  async function request(call: AxiosRequest): Promise<unknown> {
    const headers = { Authorization: token() ? `Bearer ${token()}` : null }
    // api/interceptor.ts:70-76: errors of axios have no `msg`.
    const onError = () => display.say('Request Error')
    const { data: body } = await axios(page, { ...call, headers }, onError)
    const code = read(body, 'code')
    if (code === successCode) return read(body, 'data')
    const message = read(body, 'msg') || 'Error'
    display.say(message)
    // A sign-out that is refused with such a code opens the same dialog: the user gives up.
    const isAsked = !['/api/user/info', '/api/user/logout'].includes(call.url)
    // :53-64: the user presses "Re-Login".
    if (endCodes.includes(code) && isAsked) await signOut()
    throw new ConsoleFault(text(message))
  }

  /** store/modules/user/index.ts:73-87: the token goes, whatever the response is. */
  async function signOut(): Promise<void> {
    try {
      await request(post('/api/user/logout'))
    } finally {
      page.localStorage.removeItem(tokenKey)
    }
    display.at = 'sign-in'
  }

  /** store/modules/user/index.ts:57-61 and router/guard/userLoginInfo.ts:11-28, with a token */
  const enter = () =>
    orElse(
      async () => {
        const info = await request(post('/api/user/info'))
        display.at = 'inside'
        const role = text(read(info, 'role'))
        return { name: text(read(info, 'name')), roles: role === '' ? [] : [role] }
      },
      async () => {
        // Where the sign-out is refused too, the guard never calls `next`: the page stays empty.
        display.at = 'inside'
        await signOut()
        return undefined
      }
    )

  return {
    token,
    enter,
    signIn: async ({ username, password }) => {
      try {
        const login = await request(post('/api/user/login', { username, password }))
        // store/modules/user/index.ts:67 and localStorage: what is missing becomes a text.
        page.localStorage.setItem(tokenKey, stringOf(read(login, 'token')))
      } catch (error) {
        // store/modules/user/index.ts:68-71; the form shows the message too, and so does a toast
        page.localStorage.removeItem(tokenKey)
        throw error
      }
      // router/guard/userLoginInfo.ts:11: an empty text is no token.
      return token() ? enter() : undefined
    },
    // store/modules/app/index.ts:47-70, with `menuFromServer`
    menu: async () => {
      const menu = listOf(await request(post('/api/user/menu')))
      return { entries: menu.map(entry => text(read(entry, 'name'))), permissions: [] }
    },
    list: async (current, pageSize, title) => {
      const data = await request(get('/api/list/policy', { title, current, pageSize }))
      return tableOf(read(data, 'list'), read(data, 'total'))
    },
    // api/interceptor.ts:66: the page gets a message, and no body.
    save: values => request(post('/api/list/policy', values)),
    // hooks/user.ts:9-20: only a sign-out that succeeded leads to the sign-in page.
    signOut
  }
}

function stringOf(value: unknown): string {
  if (value === undefined) return 'undefined'
  return typeof value === 'string' ? value : JSON.stringify(value)
}
