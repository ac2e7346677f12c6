/** gin-vue-admin, folder web. Its request layer is utils/request.js. Files are those of web/src. */
import { type ConsoleSpec, Fault, type Json, ShownFault, titlesOf } from '../console.ts'

export const ginVueAdmin: ConsoleSpec = {
  name: 'gin-vue-admin',
  places: { token: { in: 'localStorage', key: 'token', as: 'text' } }, // pinia/modules/user.js:23
  ownCode: ({ state, keep }) => ({
    userStore: { token: state()['token'], setToken: (token: string) => keep({ token }) }
  }),
  headers: ({ token, user }) => ({ 'x-token': token, 'x-user-id': user?.ID }),
  message: ({ code, msg }) => (code === undefined ? undefined : msg || '请求失败'),
  // utils/request.js:156-158 and :222-253: a dialog with the message of the body
  statusMessage: (_, body) => body.msg || '请求失败',
  calls: {
    captcha: 'POST /api/base/captcha',
    signIn: {
      at: 'POST /api/base/login',
      body: ({ username, password, captcha = '' }, { captcha: shown }) => {
        checkForm({ username, password, captcha }, shown)
        const { captchaId, openCaptcha } = shown
        return { username, password, captcha, captchaId, openCaptcha: Boolean(openCaptcha) }
      }
    },
    menu: 'POST /api/menu/getMenu',
    user: { at: 'GET /api/user/getUserInfo', gives: body => body.data.userInfo },
    list: 'GET /api/info/getInfoList', // plugin/announcement/api/info.js
    save: 'POST /api/info/createInfo',
    signOut: 'POST /api/jwt/jsonInBlacklist'
  },
  beforeSignIn: () => ['captcha'],
  keeps: ({ token, user }) => ({ token, user, home: user.authority.defaultRouter }),
  afterSignIn: ['menu'],
  onStart: ['menu', 'user'], // permission.js:118-146 and :186-199
  // Views show `nickName`; after the sign-in there must be a route to the user's home.
  user: ({ user, menu, home }) => {
    if (home && !menu.menus.some(({ name }: Json) => name === home)) {
      throw new ShownFault('不存在可以登陆的首页，请联系管理员进行配置')
    }
    return { name: user.nickName, roles: [user.authority.authorityName] }
  },
  menu: ({ menu }) => ({ entries: titlesOf(menu.menus) }),
  paging: { page: 'page', size: 'pageSize' }, // plugin/announcement/view/info.vue:342-354
  table: ({ list, total, page, pageSize }) => [list, total, page, pageSize],
  ends: { status: 401, by: 'leaving' }
}

/** view/login/index.vue:132-176 */
function checkForm({ username, password, captcha }: Json, shown: Json): void {
  if (username.length < 5) throw new Fault('请输入正确的用户名')
  if (password.length < 6) throw new Fault('请输入正确的密码')
  if (!shown.openCaptcha) return
  if (!/^\d+$/.test(captcha)) throw new Fault('验证码须为数字')
  if (captcha.length < shown.captchaLength) throw new Fault('请输入验证码')
}
