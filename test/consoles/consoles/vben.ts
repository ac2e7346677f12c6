/** Vben Admin 5, apps/web-antd/src, and packages/effects/request/src/request-client. */
import { type ConsoleSpec, type Place, titlesOf } from '../console.ts'

/** packages/stores/src/modules/access.ts:51 and :102-111 */
const stored = (member: string): Place => ({
  in: 'localStorage',
  key: 'core-access',
  member,
  as: 'JSON'
})

export const vben: ConsoleSpec = {
  name: 'vben',
  places: { token: stored('accessToken'), codes: stored('accessCodes') },
  // router/guard.ts:66-86; store/auth.ts:36-39: without a truthy token nothing happens at all.
  ownCode: ({ token, setToken, keep, call }) => ({
    accessStore: {
      accessToken: token,
      setAccessToken: setToken,
      setAccessCodes: (codes: readonly string[]) => keep({ codes })
    },
    getAccessCodesApi: () => call('codes')
  }),
  message: ({ error, message }) => error ?? message,
  statusMessage: (status, { error, message }) => error ?? message ?? `(words for status ${status})`,
  // apps/web-antd/.env.development:7; the production file has a host of its own there.
  calls: {
    signIn: 'POST /api/auth/login',
    user: 'GET /api/user/info',
    codes: 'GET /api/auth/codes',
    menu: 'GET /api/menu/all', // api/core/menu.ts:9, with `accessMode: backend`
    list: 'GET /api/table/list', // apps/backend-mock/api/table/list.ts and api/system/dept/.post.ts
    save: 'POST /api/system/dept',
    signOut: {
      at: 'POST /api/auth/logout',
      body: () => ({ withCredentials: true }),
      isQuiet: true
    }
  },
  leavesAnyway: true,
  keeps: ({ accessToken }) => ({ token: accessToken }),
  afterSignIn: ['user', 'codes'], // store/auth.ts:43-46
  user: ({ user }) => ({ name: user.realName, roles: user.roles ?? [] }), // router/guard.ts:96
  menuCalls: ['menu'],
  menu: ({ menu, codes }) => ({ entries: titlesOf(menu), permissions: codes ?? [] }),
  paging: { page: 'page', size: 'pageSize' }, // apps/backend-mock/utils/response.ts:20-25
  table: ({ items, total }) => [items, total],
  fieldErrors: body => body.fieldErrors, // request-client.ts:159: the page catches the body
  // api/request.ts:33-46, with `loginExpiredMode: page`
  ends: { status: 401, by: 'signing out' }
}

/** With `preferences.app.enableRefreshToken`, which is off by default. */
export const vbenRefreshing: ConsoleSpec = {
  ...vben,
  calls: {
    ...vben.calls,
    // api/core/auth.ts:31-35 and api/request.ts:51-57: the whole body is the token.
    refresh: {
      at: 'POST /api/auth/refresh',
      body: () => ({ withCredentials: true }),
      isOk: body => typeof body === 'string',
      gives: accessToken => ({ accessToken })
    }
  },
  renews: { status: 401 }
}
