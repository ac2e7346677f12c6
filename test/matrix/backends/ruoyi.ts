/**
 * RuoYi-Vue: yangzongzhuan/RuoYi-Vue@a6ea55e. Every response has status 200, with a code in its
 * body; tokens stand in Redis, so that they can be ended.
 *
 * Files of the comments: ruoyi-admin/src/main/java/com/ruoyi/web/controller (SysLoginController,
 * CaptchaController, SysNoticeController), ruoyi-framework/src/main/java/com/ruoyi/framework
 * (SysLoginService, TokenService, GlobalExceptionHandler, AuthenticationEntryPointImpl,
 * LogoutSuccessHandlerImpl), ruoyi-common/src/main/java/com/ruoyi/common (AjaxResult, PageDomain).
 */
import {
  bearerIn,
  captchaPicture,
  familyOf,
  itemsWith,
  pageOf,
  type Request,
  type Response,
  type TestUser,
  userWith
} from '../backend.ts'

/** AjaxResult.java:43: members stand beside `code` and `msg`. */
const ajax = (code: number, msg: string, members: object = {}): Response => ({
  status: 200,
  json: { msg, code, ...members }
})
const success = (members?: object) => ajax(200, '操作成功', members)
/** GlobalExceptionHandler.java:58 and 96. */
const error = (msg: string) => ajax(500, msg)

const wrongPassword = '用户不存在/密码错误'
const wrongCaptcha = '验证码错误'
const noTitle = '公告标题不能为空'

/** PageDomain.java:21 and TableSupport.java:44; a page beyond the last is the last (`reasonable`). */
function list({ query }: Request): Response {
  const found = itemsWith(query.get('noticeTitle'))
  const size = Number(query.get('pageSize') ?? 10)
  const lastPage = Math.max(1, Math.ceil(found.length / size))
  const page = Math.min(Math.max(Number(query.get('pageNum') ?? 1), 1), lastPage)
  const rows = pageOf(page, size, found).map(({ id, title }) => ({
    noticeId: id,
    noticeTitle: title,
    noticeType: '1',
    status: '0'
  }))
  // BaseController.java:83.
  return ajax(200, '查询成功', { total: found.length, rows })
}

/** SysLoginController.java:73: the user, and beside it what the user may do. */
function info({ id, username, name, role }: TestUser): Response {
  const admin = role === 'admin'
  const roles = [{ roleKey: role, admin }]
  return success({
    user: { userId: id, userName: username, nickName: name, avatar: '', roles, admin },
    roles: [role],
    permissions: admin ? ['*:*:*'] : ['system:notice:list'],
    pwdChrtype: '0',
    isDefaultModifyPwd: false,
    isPasswordExpired: false
  })
}

/** SysLoginController.java:102. */
const menus = success({
  data: [
    {
      name: 'System',
      path: '/system',
      hidden: false,
      redirect: 'noRedirect',
      component: 'Layout',
      alwaysShow: true,
      meta: { title: '系统管理', icon: 'system', noCache: false, link: null },
      children: [
        {
          name: 'Notice',
          path: 'notice',
          hidden: false,
          component: 'system/notice/index',
          meta: { title: '通知公告', icon: 'message', noCache: false, link: null }
        }
      ]
    }
  ]
})

export const backend = familyOf({
  name: 'ruoyi',
  source: 'yangzongzhuan/RuoYi-Vue@a6ea55ecf74ae6cdb063f2b413d66a33f29bf828',
  list: {
    path: '/system/notice/list',
    fields: { id: 'noticeId', title: 'noticeTitle' },
    search: 'noticeTitle'
  },
  save: {
    path: '/system/notice',
    message: noTitle,
    operations: [{ rename: { title: 'noticeTitle' } }]
  },
  // messages.properties:6 and 3.
  wrongPassword,
  wrongCaptcha,
  // TokenService.java:219.
  tokenIn: bearerIn,
  // SecurityConfig.java:108 and AuthenticationEntryPointImpl.java:30: 401 in the body, 200 outside.
  unauthorized: ({ path }) => ajax(401, `请求访问：${path}，认证失败，无法访问系统资源`),
  // GlobalExceptionHandler.java:107: Spring's own message for a body that is not JSON.
  refuse: ({ text, type }) =>
    text === '' || type.startsWith('application/json')
      ? undefined
      : error(`Content-Type '${type}' is not supported`),
  open: {
    // CaptchaController.java:46.
    'GET /captchaImage': ({ captchas, options }) =>
      options.captcha
        ? success({ captchaEnabled: true, uuid: captchas.show(), img: captchaPicture })
        : success({ captchaEnabled: false }),
    // SysLoginService.java:63: the captcha is used up before the password is looked at.
    'POST /login': ({ member, captchas, options, tokens }) => {
      if (options.captcha) {
        const fits = captchas.take(member('uuid'), member('code'))
        if (fits !== true) return error(fits === undefined ? '验证码已失效' : wrongCaptcha)
      }
      const user = userWith(member('username'), member('password'))
      return user === undefined
        ? error(wrongPassword)
        : success({ token: tokens.issue(user).access })
    },
    // LogoutSuccessHandlerImpl.java:39: also without a session.
    'POST /logout': ({ tokens, token }) => {
      tokens.end(token ?? '')
      return ajax(200, '退出成功')
    }
  },
  guarded: {
    'GET /getInfo': ({ user }) => info(user),
    'GET /getRouters': () => menus,
    // SysNoticeController.java:89: for the bell of every page.
    'GET /system/notice/listTop': () => success({ data: [], unreadCount: 0 }),
    'GET /system/notice/list': list,
    // SysNotice.java:55 and GlobalExceptionHandler.java:129: the message alone, without a field.
    'POST /system/notice': ({ member }) =>
      member('noticeTitle')?.trim() ? success() : error(noTitle)
  },
  // GlobalExceptionHandler.java:46 and 107.
  otherwise: ({ method, path }, knownPath) =>
    error(
      knownPath
        ? `Request method '${method}' is not supported`
        : `No static resource ${path.slice(1)}.`
    )
})
