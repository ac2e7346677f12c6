/** Arco Design Pro Vue. Files are those of arco-design-pro-vite/src. */
import type { ConsoleSpec } from '../console.ts'

export const arco: ConsoleSpec = {
  name: 'arco',
  places: { token: { in: 'localStorage', key: 'token', as: 'text' } }, // utils/auth.ts:1
  ownCode: ({ state, keep }) => ({
    isLogin: () => Boolean(state()['token']),
    setToken: (token: string) => keep({ token })
  }),
  isOk: body => body.code === 20000, // api/interceptor.ts:43 and :66
  message: ({ msg }) => msg || 'Error',
  statusMessage: () => 'Request Error', // api/interceptor.ts:70-76: errors of axios have no `msg`
  calls: {
    signIn: 'POST /api/user/login',
    user: 'POST /api/user/info',
    menu: 'POST /api/user/menu',
    // api/list.ts:26-33; .env.production is empty. The sample form sends nothing: a path like others.
    list: 'GET /api/list/policy',
    save: 'POST /api/list/policy',
    // hooks/user.ts:9-20: only a sign-out that succeeded leads to the sign-in page.
    signOut: 'POST /api/user/logout'
  },
  ifNotEntered: 'signs out', // router/guard/userLoginInfo.ts:11-28
  user: ({ user }) => ({ name: user.name, roles: [user.role] }),
  menuCalls: ['menu'], // store/modules/app/index.ts:47-70, with `menuFromServer`
  menu: ({ menu }) => ({ entries: menu.map(({ name }: { name: string }) => name) }),
  paging: { page: 'current', size: 'pageSize' },
  // api/interceptor.ts:50-64: the user presses "Re-Login".
  ends: {
    on: ({ code }) => [50008, 50012, 50014].includes(code),
    by: 'signing out',
    isOffOnStart: true
  }
}
