/** vue-pure-admin. Its request layer is utils/http/index.ts. Files are those of src. */
import { type ConsoleSpec, type Json, type State } from '../console.ts'

/** locales/zh-CN.yaml:230 and :248 */
const signInFailed = '登录失败'
const signInExpired = '登录已过期，请重新登录'

export const vuePureAdmin: ConsoleSpec = {
  name: 'vue-pure-admin',
  // utils/auth.ts:24-40: when the first cookie has expired, what is left is the user without a token.
  places: {
    token: { in: 'cookie', key: 'authorized-token', as: 'JSON', expires: ({ expires }) => expires },
    tabs: { in: 'cookie', key: 'multiple-tabs', as: 'text' },
    user: { in: 'localStorage', key: 'user-info', as: 'JSON' }
  },
  // router/index.ts:152 and :172-176: no request asks whether the session is still there.
  knownBy: ['tabs', 'user'],
  ownCode: ({ state, keep }) => ({
    getToken: (): Json => state()['token'],
    setToken: (data: Json) => keep(keptOf(data, state()))
  }),
  headers: ({ token }) => ({
    'X-Requested-With': 'XMLHttpRequest',
    'Authorization': token && `Bearer ${token.accessToken}`
  }),
  statusMessage: () => undefined,
  ownWords: { wrongPassword: signInFailed },
  calls: {
    signIn: {
      at: 'POST /login',
      message: () => signInFailed,
      statusMessage: () => signInFailed
    },
    refresh: {
      at: 'POST /refresh-token',
      body: (_, { user }) => ({ refreshToken: user.refreshToken }),
      message: () => signInExpired,
      statusMessage: () => signInExpired
    },
    // router/utils.ts:201-236: a body of another code is no error, and has no routes.
    routes: {
      at: 'GET /get-async-routes',
      isOk: () => true,
      gives: ({ code, data }) => (code === 0 ? data : [])
    },
    // The example lists of the console are POST without a page: views/system/user/utils/hook.tsx:275.
    list: 'GET /user',
    save: { at: 'POST /user/add', message: ({ message }) => message }
    // store/modules/user.ts:95-104: the sign-out sends nothing.
  },
  keeps: keptOf,
  onStart: ['routes'],
  user: ({ user }) => ({ name: user.nickname || user.username, roles: user.roles ?? [] }),
  menuCalls: ['routes'],
  menu: ({ routes, user }) => ({
    entries: routes.map(({ path }: Json) => path),
    permissions: user.permissions
  }),
  // Its table takes page and size from the answer.
  paging: { page: 'currentPage', size: 'pageSize' },
  table: ({ list, total, currentPage, pageSize }) => [list, total, currentPage, pageSize],
  fieldErrors: body => body.fieldErrors,
  renews: { when: ({ user, now }) => user?.expires <= now }, // utils/http/index.ts:80-106
  ends: { by: 'leaving' },
  noticesEndBy: 'clock'
}

/** utils/auth.ts:48-116; a refresh tells no names. */
function keptOf(given: Json, { user: former = {} }: State): Record<string, Json> {
  const { accessToken, refreshToken } = given
  const expires = new Date(given.expires).getTime()
  const {
    username = '',
    nickname = '',
    roles = [],
    permissions = []
  } = given.username && given.roles ? given : former
  return {
    token: { accessToken, expires, refreshToken },
    tabs: 'true',
    user: { refreshToken, expires, username, nickname, roles, permissions }
  }
}
