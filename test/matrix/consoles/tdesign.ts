/**
 * TDesign Vue Next Starter. Source: Tencent/tdesign-vue-next-starter@0e13d9e. Its request layer is
 * utils/request around axios. Paths below are those of src.
 *
 * The starter signs in without a request (store/modules/user.ts:24-57) and makes up the user
 * (:58-74). The driver stands for a console whose two mocks were replaced by calls of its own request
 * layer: `POST /login {account, password}` → `{token}`, and `GET /user-info` → `{name, roles}`.
 */
import { AxiosError, axios, type AxiosRequest, get, post } from '../axios.ts'
import {
  ConsoleFault,
  type Display,
  listOf,
  openConsole,
  orElse,
  type Parts,
  read,
  tableOf,
  text,
  textsOf
} from '../display.ts'
import type { Driver, Page } from '../driver.ts'

/** .env:4; with VITE_IS_REQUEST_PROXY=false the host is the console's own origin. */
const api = '/api'

/** store/modules/user.ts:80-87 */
const storageKey = 'user'

/** utils/request/index.ts:196-199; the second between two attempts is left out. */
const retries = 3

/** utils/request/index.ts:55: the message of the server is not read. */
const refusal = '请求接口错误, 错误码: '

export const tdesign: Driver = {
  name: 'tdesign',
  ownWords: { wrongPassword: refusal, refused: refusal },
  // layouts/components/Header.vue:140-145, permission.ts:73-80
  signsOutSilently: true,
  // api/list.ts:4-13
  calls: { list: `${api}/get-list`, save: `${api}/save` },
  open: page => openConsole(display => partsOf(page, display))
}

function partsOf(page: Page, display: Display): Parts {
  let menu: readonly string[] | undefined
  const token = () => text(read(JSON.parse(page.localStorage.getItem(storageKey) ?? '{}'), 'token'))
  const keep = (kept: string) =>
    page.localStorage.setItem(storageKey, JSON.stringify({ token: kept }))

  /** utils/request/index.ts:19-57 and :128-151 */
  async function request(call: AxiosRequest): Promise<unknown> {
    const { status, data } = await send(call)
    if (status === 204 && call.method !== 'GET') return undefined
    if (!data) throw new ConsoleFault('请求接口错误')
    const code = read(data, 'code')
    if (code !== 0) throw new ConsoleFault(refusal + String(code))
    return read(data, 'data')
  }

  /** Every status beyond 2xx is tried again, whatever the method is. */
  async function send(call: AxiosRequest, attempt = 0): ReturnType<typeof axios> {
    // utils/request/index.ts:121-123 and :160: the token without a scheme
    const headers = { Authorization: token() || null }
    // utils/request/index.ts:77-80
    const params = call.method === 'GET' ? { ...call.params, _t: page.now() } : {}
    try {
      return await axios(page, { ...call, url: api + call.url, params, headers })
    } catch (error) {
      if (!(error instanceof AxiosError) || attempt === retries) throw error
      return send(call, attempt + 1)
    }
  }

  /** What fails is shown, and goes on. */
  const shown = <Result>(act: () => Promise<Result>) =>
    orElse(act, async error => {
      display.say(error.message)
      throw error
    })

  /** permission.ts:13-70, before each page */
  async function guard() {
    if (!token()) return leave()
    return orElse(
      async () => {
        const user = await request(get('/user-info'))
        menu ??= await fetchMenu()
        display.at = 'inside'
        return { name: text(read(user, 'name')), roles: textsOf(read(user, 'roles')) }
      },
      async ({ message }) => {
        display.say(message)
        return leave()
      }
    )
  }

  /** store/modules/permission.ts:31-41 */
  const fetchMenu = () =>
    orElse(
      async () => {
        const data = await request(get('/get-menu-list-i18n'))
        return listOf(read(data, 'list')).map(route => text(read(route, 'path')))
      },
      async () => {
        throw new ConsoleFault("Can't build routes")
      }
    )

  /** permission.ts:73-80 and store/modules/user.ts:75-78: no request at all */
  function leave(): undefined {
    keep('')
    menu = undefined
    display.at = 'sign-in'
  }

  return {
    token,
    enter: guard,
    // pages/login/components/Login.vue:136-150
    signIn: async ({ username, password }) => {
      await shown(async () => {
        const login = await request(post('/login', { account: username, password }))
        keep(text(read(login, 'token')))
      })
      return guard()
    },
    menu: async () => {
      await guard()
      return menu === undefined ? undefined : { entries: menu, permissions: [] }
    },
    // pages/list/base/index.vue:161-175: nothing is shown of a refusal.
    list: async (current, pageSize, title) => {
      if ((await guard()) === undefined) return undefined
      const data = await request(get('/get-list', { title, current, pageSize }))
      return tableOf(read(data, 'list'), read(data, 'total'))
    },
    // utils/request/index.ts:55: the page gets a message with a code, and no body.
    save: values => shown(() => request(post('/save', values))),
    // layouts/components/Header.vue:140-145
    signOut: async () => leave()
  }
}
