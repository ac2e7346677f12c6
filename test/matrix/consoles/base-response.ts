/**
 * The consoles of the kind `{ok, code, message, data}`. Source: kuizuo/nest-trpc-prisma-starter@4f44206.
 * Paths below are those of apps/admin/src.
 */
import { get, post } from '../axios.ts'
import {
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
import { errorsIn, umiRequest } from '../umi.ts'

/** utils/auth.ts:3 and :14-16 */
const tokenCookie = 'TOKEN__'
const tokenDays = 14
const day = 86_400_000

export const baseResponse: Driver = {
  name: 'base-response',
  // requestErrorConfig.ts:65-67 and :72-76, app.tsx:67-73
  noticesEndBy: 'reload',
  // services/user/api.ts:6-35
  calls: { list: '/api/users/page', save: '/api/users' },
  open: page => openConsole(display => partsOf(page, display))
}

function partsOf(page: Page, display: Display): Parts {
  const request = umiRequest({
    page,
    display,
    // requestErrorConfig.ts:90-100
    headers: () => {
      const token = page.cookies.get(tokenCookie)
      return { Authorization: token ? `Bearer ${token}` : null }
    },
    isRefusal,
    message: 'message',
    // requestErrorConfig.ts:65-67: nothing
    redirect: () => {},
    // requestErrorConfig.ts:72-76
    statusMessage: (_status, body) => String(text(read(body, 'message')) || undefined)
  })
  let user: unknown

  /** app.tsx:25-35 and :67-73 */
  async function enter() {
    const call = get('/api/account/profile')
    user = await orElse(
      async () => read(await request(call, { skipErrorHandler: true }), 'data'),
      async () => undefined
    )
    display.at = user ? 'inside' : 'sign-in'
    if (!user) return undefined
    const role = text(read(user, 'role'))
    const roles = textsOf(read(user, 'roles') ?? (role === '' ? [] : [role]))
    return { name: text(read(user, 'name')) || text(read(user, 'username')), roles }
  }

  return {
    token: () => true,
    enter,
    // pages/login/index.tsx:105-126
    signIn: async ({ username, password }) => {
      const data = { username, password, type: 'account' }
      const login = await request(post('/api/auth/admin/login', data))
      if (!read(login, 'ok')) return undefined
      // utils/auth.ts:10-17: what is no text is not kept.
      const token = read(read(login, 'data') ?? {}, 'authToken')
      if (typeof token === 'string') {
        page.cookies.set(tokenCookie, token, page.now() + tokenDays * day)
      }
      return enter()
    },
    // access.ts:12: the menu is in the console, by `canAdmin`.
    menu: async () => ({
      entries: [],
      permissions: read(user ?? {}, 'role') === 'Admin' ? ['canAdmin'] : []
    }),
    // services/user/api.ts:6-28
    list: async (current, pageSize, title) => {
      const params = { title, current, pageSize, page: current, limit: pageSize }
      const data = read(await request(get('/api/users/page', params)), 'data') ?? {}
      return tableOf(read(data, 'items'), read(data, 'meta', 'totalCount'))
    },
    // pages/user/index.tsx:29-40
    save: values => request(post('/api/users', values)),
    fieldErrors: errorsIn,
    // components/RightContent/AvatarDropdown.tsx:27-42: only a sign-out that succeeded leads away.
    signOut: async () => {
      await request(get('/api/account/logout'))
      display.at = 'sign-in'
    }
  }
}

/** requestErrorConfig.ts:32-41 and :103-114 */
function isRefusal(body: unknown): boolean {
  const [ok, success] = [read(body ?? {}, 'ok'), read(body ?? {}, 'success')]
  return !ok && (ok === false || success === false)
}
