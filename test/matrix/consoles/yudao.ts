/**
 * Yudao. Source: yudaocode/yudao-ui-admin-vue3@9445977. Its request layer is the file
 * config/axios/service.ts around axios. Paths below are those of src.
 *
 * Built with VITE_BASE_URL empty (.env.prod names a host) and tenants on. VITE_APP_CAPTCHA_ENABLE
 * is `true` where credentials have a captcha, and otherwise `false`: the slider cannot be switched
 * off by a response.
 */
import { axios, type AxiosRequest, get, post } from '../axios.ts'
import {
  ConsoleFault,
  type Display,
  listOf,
  Layer,
  openConsole,
  orElse,
  type Parts,
  read,
  stored,
  type Stored,
  tableOf,
  text,
  textsOf
} from '../display.ts'
import type { Driver, Page, ShownUser } from '../driver.ts'

/** .env.prod:13 */
const api = '/admin-api'

/** .env:26 */
const tenantName = '芋道源码'

/** locales/zh-CN.ts:336-352 */
const words = {
  timeout: '登录超时,请重新登录!',
  failed: '请求出错，请稍候重试',
  internal: '服务器错误,请联系管理员!'
}

/** config/axios/service.ts:24-27 */
const ignoredMessages: readonly unknown[] = ['无效的刷新令牌', '刷新令牌已过期']

export const yudao: Driver = {
  name: 'yudao',
  // api/system/notice/index.ts
  calls: { list: `${api}/system/notice/page`, save: `${api}/system/notice/create` },
  open: page => openConsole(display => partsOf(page, display))
}

function partsOf(page: Page, display: Display): Parts {
  const client = new Requests(page, display)
  const { store } = client

  /** store/modules/user.ts:51-71: `data` is the user with roles, permissions and menus. */
  async function enter(): Promise<ShownUser> {
    const info = await orElse(
      () => client.whileEntering(() => client.data(get('/system/auth/get-permission-info'))),
      async error => {
        // :60-63: a cached user goes in although the call failed.
        if (store.get('user') === undefined) throw error
        return store.get('user')
      }
    )
    textsOf(read(info, 'permissions') || [])
    store.set('user', info)
    // store/modules/permission.ts:43-47
    if (read(info, 'menus')) listOf(read(info, 'menus'))
    display.at = 'inside'
    await fetchDictionary()
    return { name: text(read(info, 'user', 'nickname')), roles: textsOf(read(info, 'roles')) }
  }

  /** permission.ts:40 and store/modules/dict.ts:48: beside the user; nobody waits for it. */
  const fetchDictionary = () =>
    orElse<unknown>(
      async () => listOf((await client.data(get('/system/dict-data/simple-list'))) || []),
      async () => {}
    )

  return {
    // permission.ts:28-71
    token: () => store.get('ACCESS_TOKEN'),
    enter,
    // views/Login/components/LoginForm.vue:197-278
    signIn: async ({ username, password, captcha }) => {
      const captchaVerification = captcha && (await solve(client, display, captcha))
      // :208-213
      const url = `/system/tenant/get-id-by-name?name=${encodeURIComponent(tenantName)}`
      store.set('tenantId', await client.data(get(url)))
      const data = { tenantName, username, password, captchaVerification, rememberMe: true }
      const login = await client.data(post('/system/auth/login', data))
      if (!login) return undefined
      keepTokens(store, login)
      return store.get('ACCESS_TOKEN') ? enter() : undefined
    },
    // utils/routerHelper.ts:89-101
    menu: async () => {
      const info = store.get('user')
      const menus = listOf(read(info, 'menus') || []).filter(menu => read(menu, 'visible'))
      return {
        entries: menus.map(menu => text(read(menu, 'name'))),
        permissions: textsOf(read(info, 'permissions') || [])
      }
    },
    // views/system/notice/index.vue:142-150
    list: async (pageNo, pageSize, title) => {
      const data = await client.data(get('/system/notice/page', { title, pageNo, pageSize }))
      return tableOf(read(data, 'list'), read(data, 'total'))
    },
    // config/axios/service.ts:220: the page gets the text "error", and no body.
    save: values => client.data(post('/system/notice/create', values)),
    refresh: async () => {
      await client.refresh()
      return Boolean(store.get('ACCESS_TOKEN'))
    },
    // store/modules/user.ts:86-91: only a sign-out that succeeded leads to the sign-in page.
    signOut: async () => {
      await client.data(post('/system/auth/logout'))
      forget(store)
      display.at = 'sign-in'
    }
  }
}

/** components/Verifition/src/Verify/VerifySlide.vue:275-310 and :359-368 */
async function solve(client: Requests, display: Display, pointJson: string): Promise<string> {
  const captchaType = 'blockPuzzle'
  const got = await client.request(post('/system/captcha/get', { captchaType }))
  if (read(got, 'repCode') !== '0000') throw new ConsoleFault(text(read(got, 'repMsg')))
  const token = text(read(got, 'repData', 'token'))
  const data = { captchaType, pointJson, token }
  const checked = await client.request(post('/system/captcha/check', data))
  if (read(checked, 'repCode') === '0000') return `${token}---${pointJson}`
  display.say('验证失败')
  throw new ConsoleFault('the slider goes back')
}

/** utils/auth.ts:23-26 */
function keepTokens(store: Stored, tokens: unknown): void {
  store.set('REFRESH_TOKEN', read(tokens, 'refreshToken'))
  store.set('ACCESS_TOKEN', read(tokens, 'accessToken'))
}

/** utils/auth.ts:29-32 and hooks/web/useCache.ts, deleteUserCache */
function forget(store: Stored): void {
  for (const name of ['ACCESS_TOKEN', 'REFRESH_TOKEN', 'user']) store.set(name, undefined)
}

class Requests extends Layer {
  /** hooks/web/useCache.ts and utils/auth.ts: web-storage-cache */
  readonly store = stored(this.page)
  /** config/axios/service.ts:29 */
  #isDialogOpen = false

  /** permission.ts:44-46 */
  async whileEntering<Result>(act: () => Promise<Result>): Promise<Result> {
    this.#isDialogOpen = true
    const result = await act()
    this.#isDialogOpen = false
    return result
  }

  /** config/axios/index.ts: `data` of the body. */
  async data(request: AxiosRequest): Promise<unknown> {
    return read(await this.request(request), 'data')
  }

  /** config/axios/service.ts:49-239. @returns the whole body */
  async request(request: AxiosRequest): Promise<unknown> {
    const body = await this.#send(request)
    if (!body) throw new ConsoleFault('')
    const code = read(body, 'code') ?? 200
    const message = read(body, 'msg')
    if (ignoredMessages.includes(message)) throw new ConsoleFault(text(message))
    if (code === 401) return this.#renew(request)
    if (code === 0 || code === 200) return body
    this.display.say(code === 500 ? words.internal : message || '系统未知错误，请反馈给管理员')
    throw new ConsoleFault('error')
  }

  /** :51-69 and :225-238: a status that is not 2xx; its body is not read. */
  async #send(request: AxiosRequest): Promise<unknown> {
    const token = this.store.get('ACCESS_TOKEN')
    const isOpen = /\/login|\/refresh-token/.test(request.url)
    const headers = {
      'Authorization': token && !isOpen ? `Bearer ${text(token)}` : null,
      'tenant-id': text(this.store.get('tenantId')) || null
    }
    const sent = { ...request, url: api + request.url, headers }
    const { data } = await axios(this.page, sent, ({ response }) =>
      this.display.say(`${words.failed}${response?.status ?? ''}`)
    )
    return data
  }

  /** :152-194: one renewal, then the request again. */
  async #renew(request: AxiosRequest): Promise<unknown> {
    if (!this.store.get('REFRESH_TOKEN')) return this.#askAgain()
    await orElse(
      () => this.refresh(),
      async () => this.#askAgain()
    )
    return this.request(request)
  }

  /** :164 and :241-244: plain axios, so that neither status nor code of the body is looked at first. */
  async refresh(): Promise<void> {
    const token = text(this.store.get('REFRESH_TOKEN'))
    const url = `${api}/system/auth/refresh-token?refreshToken=${token}`
    const headers = { 'tenant-id': text(this.store.get('tenantId')) || null }
    const { data } = await axios(this.page, { ...post(url), headers })
    keepTokens(this.store, read(data, 'data'))
  }

  /** :245-270. The dialog has one button. */
  #askAgain(): never {
    if (!this.#isDialogOpen) {
      if (this.display.at === 'sign-in') throw new ConsoleFault('nothing happens')
      this.display.say(words.timeout)
      forget(this.store)
      this.display.at = 'sign-in'
    }
    throw new ConsoleFault(words.timeout)
  }
}
