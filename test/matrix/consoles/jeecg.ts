/**
 * JeecgBoot. Source: jeecgboot/JeecgBoot@cb4d606, folder jeecgboot-vue3. Its request layer is the
 * folder utils/http/axios. Paths below are those of jeecgboot-vue3/src.
 */
import { createCipheriv, createHash } from 'node:crypto'
import { type AxiosError, axios, type AxiosRequest, get, post } from '../axios.ts'
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
  textsOf,
  titlesOf
} from '../display.ts'
import type { Driver, Page, ShownUser } from '../driver.ts'

/** .env.production:16 */
const api = '/jeecgboot'

/** locales/lang/zh-CN/sys.ts:6-25 */
const words = {
  timeout: '登录超时,请重新登录!',
  failed: '请求出错，请稍候重试',
  status401: '用户没有权限（令牌、用户名、密码错误）!'
}

export const jeecg: Driver = {
  name: 'jeecg',
  // views/system/notice/notice.api.ts
  calls: { list: `${api}/sys/annountCement/list`, save: `${api}/sys/annountCement/add` },
  open: page => openConsole(display => partsOf(page, display))
}

type MessageMode = 'message' | 'none'

function partsOf(page: Page, display: Display): Parts {
  const client = new Requests(page, display)
  const { cache } = client
  let permission: unknown

  /** store/modules/permission.ts:124-133, :284 and api/sys/menu.ts:35-52 */
  async function fetchMenus(): Promise<void> {
    permission = await client.request(get('/sys/permission/getUserPermissionByToken'))
    read(permission, 'codeList')
    for (const route of listOf(read(permission, 'menu'))) read(route, 'meta', 'title')
  }

  /** store/modules/user.ts:248-273 and api/sys/user.ts:81-98; a failure leaves nothing to read. */
  async function fetchUser(): Promise<ShownUser> {
    const user = read(await client.request(get('/sys/user/getUserInfo')), 'userInfo')
    if (!user) throw new ConsoleFault('no user')
    cache.set('USER__INFO__', user)
    return shownOf(user)
  }

  /** store/modules/user.ts:144-160 and :178-221 */
  async function logIn(data: object): Promise<ShownUser> {
    const login = await client.request(post('/sys/login', data), 'none')
    cache.set('TOKEN__', read(login, 'token'))
    cache.set('TENANT_ID', read(login, 'userInfo', 'loginTenantId'))
    if (!cache.get('TOKEN__')) throw new ConsoleFault('nothing to destructure')
    const user = await fetchUser()
    await fetchMenus()
    display.at = 'inside'
    return user
  }

  return {
    // router/guard/permissionGuard.ts:80-175
    token: () => cache.get('TOKEN__'),
    enter: async () => {
      display.at = 'inside'
      await fetchMenus()
      return shownOf(cache.get('USER__INFO__'))
    },
    // views/system/loginmini/MiniLogin.vue:356-364 and :385-432
    signIn: async ({ username, password, captcha = '' }) => {
      const checkKey = `${page.now()}a1b2`
      await client.request(get(`/sys/randomImage/${checkKey}`))
      return orElse(
        () => logIn({ password: encrypt(password), username, captcha, checkKey }),
        async error => {
          // MiniLogin.vue:422-428: the message of whatever was thrown.
          display.say(error.message)
          throw error
        }
      )
    },
    menu: async () => ({
      entries: titlesOf(read(permission, 'menu')),
      permissions: textsOf(read(permission, 'codeList') ?? [])
    }),
    // components/Table/src/hooks/useDataSource.ts:233-295 and settings/componentSetting.ts:12-18
    list: async (pageNo, pageSize, title) => {
      const params = { title, pageNo, pageSize, column: 'createTime', order: 'desc' }
      const data = await client.request(get('/sys/annountCement/list', params))
      return tableOf(read(data, 'records'), read(data, 'total'))
    },
    // utils/http/axios/index.ts:88: the page gets a message, and no body.
    save: values => client.request(post('/sys/annountCement/add', values)),
    // store/modules/user.ts:277-325: whatever the response is.
    signOut: () => client.logout()
  }
}

/** The header shows `realname`; roles are objects with `value`. */
function shownOf(user: unknown): ShownUser {
  const roles = read(user, 'roles')
  const list = Array.isArray(roles) ? roles : []
  return { name: text(read(user, 'realname')), roles: list.map(role => text(read(role, 'value'))) }
}

/** utils/cipher.ts:64-80: AES with a fixed key, so that no password goes in the clear. */
function encrypt(password: string): string {
  const cipher = createCipheriv('aes-128-cbc', '1234567890adbcde', '1234567890hjlkew')
  return cipher.update(password, 'utf8', 'base64') + cipher.final('base64')
}

/**
 * utils/encryption/signMd5Utils.js:32-43 and :58-65: over all parameters in order, numbers as text,
 * and over a last segment of the path that has commas.
 */
export function sign(path: string, parameters: Readonly<Record<string, unknown>>): string {
  const last = path.slice(path.lastIndexOf('/') + 1)
  const all: Record<string, unknown> = { ...parameters }
  if (last.includes(',')) all['x-path-variable'] = decodeURIComponent(last)
  const sorted = Object.entries(all)
    .filter(([name, value]) => name !== '_t' && value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => [name, typeof value === 'number' ? `${value}` : value])
  const secret = 'dd05f1c54d63749eda95f9fa6d49v442a'
  const plain = JSON.stringify(Object.fromEntries(sorted)) + secret
  return createHash('md5').update(plain).digest('hex').toUpperCase()
}

/** utils/cache/persistent.ts: one entry of localStorage for all names. */
class Cache {
  readonly #entry: Stored

  constructor(page: Page) {
    this.#entry = stored(page, 'COMMON__LOCAL__KEY__')
  }

  get(name: string): unknown {
    return read(this.#entry.get('') ?? {}, name)
  }

  set(name: string, value: unknown): void {
    this.#entry.set('', { ...(this.#entry.get('') as object | undefined), [name]: value })
  }
}

class Requests extends Layer {
  readonly cache = new Cache(this.page)

  /** utils/http/axios/index.ts:33-255. @returns `result` of the body */
  async request(request: AxiosRequest, mode: MessageMode = 'message'): Promise<unknown> {
    const body = await this.#send(request, mode)
    if (!body) throw new ConsoleFault(words.failed)
    const code = read(body, 'code')
    const message = read(body, 'message')
    if (code === 0 || code === 200) {
      // :57-60: a message beside `success` is shown, at every response.
      if (read(body, 'success') && message) this.display.say(message)
      return read(body, 'result')
    }
    let shown = text(message)
    if (code === 401) {
      shown = words.timeout
      this.cache.set('TOKEN__', undefined)
      await this.logout()
    }
    if (mode === 'message') this.display.say(shown)
    throw new ConsoleFault(shown || words.failed)
  }

  /** :92-208 and :220-254 */
  async #send(request: AxiosRequest, mode: MessageMode): Promise<unknown> {
    const { method, data } = request
    const time = this.page.now()
    const params = method === 'GET' ? { ...request.params, _t: time } : {}
    const token = text(this.cache.get('TOKEN__'))
    const headers = {
      'X-TIMESTAMP': String(time),
      'X-Sign': sign(request.url, { ...params, ...(data as object | undefined) }),
      'X-Version': 'v3',
      ...(token !== '' && {
        'Authorization': token,
        'X-Access-Token': token,
        'X-Tenant-Id': text(this.cache.get('TENANT_ID') || 0)
      })
    }
    const sent = { ...request, url: api + request.url, headers, params }
    return (await axios(this.page, sent, error => this.#refuse(error, mode))).data
  }

  /** utils/http/axios/checkStatus.ts:14-75 */
  async #refuse({ response }: AxiosError, mode: MessageMode): Promise<void> {
    const status = response?.status
    const message = read(response?.data ?? {}, 'message')
    if (status === 401) {
      this.cache.set('TOKEN__', undefined)
      await this.logout()
    }
    if (mode === 'none') return
    if (status === 400) this.display.say(message)
    else if (status === 401) this.display.say(message || words.status401)
    else this.display.say(`(words for status ${status ?? 'network'})`)
  }

  /** store/modules/user.ts:277-325: calls only with a token. */
  async logout(): Promise<void> {
    if (this.cache.get('TOKEN__')) {
      await orElse<unknown>(
        () => this.request(get('/sys/logout')),
        async () => {}
      )
    }
    for (const name of ['TOKEN__', 'USER__INFO__', 'TENANT_ID']) this.cache.set(name, undefined)
    this.display.at = 'sign-in'
  }
}
