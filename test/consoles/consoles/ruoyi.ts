/** RuoYi-Vue3. Its request layer is utils/request.js. Files are those of src. */
import { type ConsoleSpec, Fault, titlesOf } from '../console.ts'

/** utils/errorCode.js and utils/request.js:85: words that win over the message of the body. */
const words: Readonly<Record<string, string>> = {
  401: '登录状态已过期，您可以继续留在该页面，或者重新登录',
  403: '当前操作没有权限',
  404: '访问资源不存在'
}

export const ruoyi: ConsoleSpec = {
  name: 'ruoyi',
  places: { token: { in: 'cookie', key: 'Admin-Token', as: 'text' } }, // utils/auth.js:3
  isOk: ({ code }) => (code || 200) === 200, // utils/request.js:24-124
  gives: body => body,
  message: ({ code, msg }) => words[code] || msg || '系统未知错误，请反馈给管理员',
  // utils/request.js:113-120: the body is not read.
  statusMessage: status => `系统接口${status}异常`,
  calls: {
    // views/login.vue:143-151: the picture, if the body does not switch it off.
    captcha: 'GET /prod-api/captchaImage',
    signIn: {
      at: 'POST /prod-api/login',
      body: ({ username, password, captcha: code = '' }, { captcha: shown }) => {
        const isNeeded = shown.captchaEnabled !== false
        if (isNeeded && !shown.img) throw new Fault('the picture is broken')
        if (isNeeded && code === '') throw new Fault('请输入验证码')
        return { username, password, code, uuid: shown.uuid ?? '' }
      }
    },
    // store/modules/user.js:41-77: user, roles and permissions stand at the top of the body.
    user: 'GET /prod-api/getInfo',
    routes: { at: 'GET /prod-api/getRouters', gives: body => body.data },
    bell: 'GET /prod-api/system/notice/listTop', // layout/components/HeaderNotice/index.vue:53-63
    list: 'GET /prod-api/system/notice/list', // api/system/notice.js:4-10 and :21-27
    save: 'POST /prod-api/system/notice',
    signOut: 'POST /prod-api/logout'
  },
  beforeSignIn: () => ['captcha'],
  onStart: ['user', 'routes'], // permission.js:41-61
  beside: ['bell'],
  ifNotEntered: 'signs out',
  user: ({ user: { user, roles }, routes }) => {
    titlesOf(routes)
    return { name: user.nickName, roles: roles?.length ? roles : ['ROLE_DEFAULT'] }
  },
  menu: ({ user, routes }) => ({ entries: titlesOf(routes), permissions: user.permissions }),
  paging: { page: 'pageNum', size: 'pageSize' },
  table: ({ rows, total }) => [rows, total],
  // utils/request.js:85-97: the user presses "重新登录".
  ends: { on: ({ code }) => code === 401, by: 'signing out', isOffOnStart: true }
}
