/**
 * The consoles of the kind `{ok, code, message, data}`. Source: kuizuo/nest-trpc-prisma-starter@4f44206.
 * Paths below are those of apps/admin/src.
 */
import { ConsoleFault, Display, fieldErrorsOf, read, tableOf, text, textsOf } from '../display.ts'
import type { Driver, OpenConsole, Page, ShownUser } from '../driver.ts'
import { BizError, errorsIn, umiRequest } from '../umi.ts'

/** utils/auth.ts:3 and :14-16 */
const tokenCookie = 'TOKEN__'
const tokenDays = 14
const day = 86_400_000

export const baseResponse: Driver = {
  name: 'base-response',
  // requestErrorConfig.ts:65-67 and :72-76, app.tsx:67-73
  noticesEndBy: 'reload',
  calls: {
    // services/user/api.ts:6-35
    list: { method: 'GET', path: '/api/users/page' },
    save: { method: 'POST', path: '/api/users' }
  },
  open: openBaseResponse
}

function openBaseResponse(page: Page): OpenConsole {
  const display = new Display()
  const request = umiRequest({
    page,
    display,
    // requestErrorConfig.ts:90-100
    headers: () => {
      const token = page.cookies.get(tokenCookie)
      return { Authorization: token ? `Bearer ${token}` : null }
    },
    throwError,
    // requestErrorConfig.ts:65-67: nothing
    redirect: () => {},
    // requestErrorConfig.ts:72-76
    statusMessage: (_status, body) => String(text(read(body, 'message')) || undefined)
  })

  let user: unknown

  /** app.tsx:25-35 and :67-73 */
  async function fetchUser(): Promise<ShownUser | undefined> {
    user = undefined
    try {
      const call = { method: 'GET', url: '/api/account/profile' } as const
      user = read(await request(call, { skipErrorHandler: true }), 'data')
    } catch (error) {
      if (!(error instanceof ConsoleFault)) throw error
    }
    display.at = user ? 'inside' : 'sign-in'
    if (!user) return undefined
    const role = text(read(user, 'role'))
    const roles = textsOf(read(user, 'roles') ?? (role === '' ? [] : [role]))
    return { name: text(read(user, 'name')) || text(read(user, 'username')), roles }
  }

  return {
    start: () => display.step(fetchUser),
    // pages/login/index.tsx:105-126
    signIn: ({ username, password }) =>
      display.step(async () => {
        const data = { username, password, type: 'account' }
        const login = await request({ method: 'POST', url: '/api/auth/admin/login', data })
        if (!read(login, 'ok')) return undefined
        // utils/auth.ts:10-17: what is no text is not kept.
        const token = read(read(login, 'data') ?? {}, 'authToken')
        if (typeof token === 'string') {
          page.cookies.set(tokenCookie, token, page.now() + tokenDays * day)
        }
        return fetchUser()
      }),
    // access.ts:12: the menu is in the console, by `canAdmin`.
    menu: () =>
      display.step(async () => ({
        entries: [],
        permissions: read(user ?? {}, 'role') === 'Admin' ? ['canAdmin'] : []
      })),
    // services/user/api.ts:6-28
    list: (current, pageSize, title) =>
      display.step(async () => {
        const params = { title, current, pageSize, page: current, limit: pageSize }
        const body = await request({ method: 'GET', url: '/api/users/page', params })
        const data = read(body, 'data') ?? {}
        return tableOf(read(data, 'items'), read(data, 'meta', 'totalCount'))
      }),
    // pages/user/index.tsx:29-40
    save: values =>
      display.step(async () => {
        try {
          await request({ method: 'POST', url: '/api/users', data: values })
          return { saved: true }
        } catch (error) {
          if (!(error instanceof ConsoleFault)) throw error
          return { saved: false, fieldErrors: fieldErrorsOf(errorsIn(error)) }
        }
      }),
    // components/RightContent/AvatarDropdown.tsx:27-42: only a sign-out that succeeded leads away.
    signOut: () =>
      display.step(async () => {
        await request({ method: 'GET', url: '/api/account/logout' })
        display.at = 'sign-in'
        return undefined
      })
  }
}

/** requestErrorConfig.ts:32-41 and :103-114 */
function throwError(body: unknown): void {
  if (read(body ?? {}, 'ok') !== false && read(body ?? {}, 'success') !== false) return
  if (read(body, 'ok')) return
  const message = read(body, 'message')
  const info = { message, showType: read(body, 'showType'), data: read(body, 'data') }
  throw new BizError(text(message), info)
}
