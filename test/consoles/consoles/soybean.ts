/**
 * SoybeanAdmin. Requests go through `@sa/axios`, a package of its workspace. Files are those of src.
 * `VITE_SERVICE_BASE_URL` (.env.prod:2) is the console's own origin here.
 */
import { type ConsoleSpec, Fault, type Json, type Place } from '../console.ts'

/** .env:41 */
const expiredCodes = ['9999', '9998', '3333']

/** .env:50 */
const stored = (name: string): Place => ({ in: 'localStorage', key: `SOY_${name}`, as: 'JSON' })

export const soybean: ConsoleSpec = {
  name: 'soybean',
  places: { token: stored('token'), refreshToken: stored('refreshToken') },
  ownCode: ({ state, keep }) => ({
    localStg: {
      get: (name: string): Json => state()[name],
      set: (name: string, value: string) => keep({ [name]: value })
    }
  }),
  isOk: ({ code }) => String(code) === '0000', // service/request/index.ts:37: compared as text
  message: ({ code, msg }) =>
    expiredCodes.includes(code) ? undefined : msg || 'the backend request error',
  calls: {
    // service/api/auth.ts:9-18: the member is `userName`.
    signIn: {
      at: 'POST /auth/login',
      body: ({ username, password }) => ({ userName: username, password })
    },
    user: 'GET /auth/getUserInfo',
    // store/modules/route/index.ts:212-231, with VITE_AUTH_ROUTE_MODE=dynamic
    menu: 'GET /route/getUserRoutes',
    // service/api/auth.ts:30-38. A refresh that is told to refresh waits for itself:
    refresh: {
      at: 'POST /auth/refreshToken',
      body: (_, { refreshToken = '' }) => ({ refreshToken }),
      isOk: ({ code }) => {
        if (expiredCodes.includes(code)) throw new Fault('The refresh waits for itself.')
        return String(code) === '0000'
      }
    },
    // The starter has no list; its examples page by `current` and `size`.
    list: 'GET /systemManage/getUserList',
    save: 'POST /systemManage/addUser'
    // layouts/modules/global-header/components/user-avatar.vue:46-56: the sign-out sends nothing.
  },
  keeps: ({ token, refreshToken }) => ({ token, refreshToken }),
  ifNotEntered: 'leaves',
  user: ({ user: { userName, roles } }) => ({ name: userName, roles }),
  menuCalls: ['menu', 'user'],
  menu: ({ menu, user }) => ({
    entries: menu.routes.map(({ name }: Json) => name),
    permissions: user.buttons
  }),
  // typings/api/common.d.ts:9-21; src/hooks/common/table.ts, `updatePagination`
  paging: { page: 'current', size: 'size' },
  table: ({ records, total, current, size }) => [records, total, current, size],
  fieldErrors: body => body.fieldErrors,
  renews: { on: ({ code }) => expiredCodes.includes(code) }, // service/request/index.ts:89-97
  ends: { on: ({ code }) => ['8888', '8889', '7777', '7778'].includes(code), by: 'leaving' }
}
