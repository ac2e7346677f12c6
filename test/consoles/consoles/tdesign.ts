/**
 * TDesign Vue Next Starter. Its request layer is utils/request. Files are those of src.
 *
 * The starter signs in without a request (store/modules/user.ts:24-57) and makes up the user
 * (:58-74). This is a console whose two mocks were replaced by calls of its own request layer:
 * `POST /login {account, password}` → `{token}`, and `GET /user-info` → `{name, roles}`.
 */
import { type ConsoleSpec, type Json, ShownFault } from '../console.ts'

/** utils/request/index.ts:55: the message of the server is not read. */
const refusal = '请求接口错误, 错误码: '

export const tdesign: ConsoleSpec = {
  name: 'tdesign',
  places: { token: { in: 'localStorage', key: 'user', member: 'token', as: 'JSON' } },
  ownCode: ({ state, keep }) => ({
    userStore: {
      get token() {
        return state()['token'] as unknown
      },
      set token(token) {
        keep({ token })
      }
    }
  }),
  // utils/request/index.ts:121-123 and :160: the token without a scheme
  headers: ({ token }) => ({ Authorization: token }),
  hasTimes: true, // utils/request/index.ts:77-80
  attempts: 4, // utils/request/index.ts:196-199: the second between two attempts is left out
  message: ({ code }) => refusal + String(code),
  ownWords: { wrongPassword: refusal, refused: refusal },
  // .env:4; with VITE_IS_REQUEST_PROXY=false the host is the console's own origin.
  calls: {
    signIn: {
      at: 'POST /api/login',
      body: ({ username, password }) => ({ account: username, password })
    },
    user: 'GET /api/user-info',
    menu: {
      at: 'GET /api/get-menu-list-i18n',
      gives: ({ data }) => {
        if (Array.isArray(data.list)) return data.list
        throw new ShownFault("Can't build routes")
      }
    },
    // api/list.ts:4-13, pages/list/base/index.vue:161-175: nothing is shown of a refusal.
    list: { at: 'GET /api/get-list', isQuiet: true },
    save: 'POST /api/save'
    // layouts/components/Header.vue:140-145, permission.ts:73-80: the sign-out sends nothing.
  },
  onStart: ['user', 'menu'], // permission.ts:13-70
  guard: ['user'],
  ifNotEntered: 'leaves',
  user: ({ user }) => ({ name: user.name, roles: user.roles }),
  menu: ({ menu }) => ({ entries: menu.map(({ path }: Json) => path) }),
  paging: { page: 'current', size: 'pageSize' }
}
