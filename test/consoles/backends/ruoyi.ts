/**
 * RuoYi-Vue. Every response has status 200, with a code in its body; tokens stand in Redis, so that
 * they can be ended. Files are those of ruoyi-admin, ruoyi-framework and ruoyi-common.
 */
import type { BackendSpec } from '../backend.ts'
import { admin, captchaPicture, type Response } from '../server.ts'

/** AjaxResult.java:43: members stand beside `code` and `msg`. */
const ajax = (code: number, msg: string, members: object = {}): Response => ({
  status: 200,
  json: { msg, code, ...members }
})
const success = (members?: object) => ajax(200, '操作成功', members)
/** GlobalExceptionHandler.java:58 and 96 */
const error = (msg: string) => ajax(500, msg)

/** messages.properties:6 and 3 */
const wrongPassword = '用户不存在/密码错误'
const wrongCaptcha = '验证码错误'
const noTitle = '公告标题不能为空'

export const ruoyi: BackendSpec = {
  name: 'ruoyi',
  wrongPassword,
  wrongCaptcha,
  signIn: {
    at: 'POST /login',
    // SysLoginService.java:63: the captcha is used up before the password is looked at.
    refuses: ({ json, captchas, options }) => {
      const isRefused = options.captcha && !captchas.take(json?.uuid, json?.code)
      return isRefused ? error(wrongCaptcha) : undefined
    },
    granted: ({ access }) => success({ token: access }),
    refused: error(wrongPassword)
  },
  // PageDomain.java:21, TableSupport.java:44 (`reasonable`), BaseController.java:83
  list: {
    path: '/system/notice/list',
    fields: { id: 'noticeId', title: 'noticeTitle' },
    query: { search: 'noticeTitle', page: 'pageNum', size: 'pageSize' },
    staysInside: true,
    answer: ({ rows, total }) => {
      const more = { noticeType: '1', status: '0' }
      return ajax(200, '查询成功', { total, rows: rows.map(row => ({ ...row, ...more })) })
    }
  },
  // SysNotice.java:55 and GlobalExceptionHandler.java:129: the message alone, without a field.
  save: {
    path: '/system/notice',
    message: noTitle,
    saved: () => success(),
    refused: () => error(noTitle)
  },
  open: {
    'GET /captchaImage': ({ captchas, options }) =>
      options.captcha
        ? success({ captchaEnabled: true, uuid: captchas.show(), img: captchaPicture })
        : success({ captchaEnabled: false }),
    // LogoutSuccessHandlerImpl.java:39: also without a session.
    'POST /logout': ({ tokens, token }) => {
      tokens.end(token)
      return ajax(200, '退出成功')
    }
  },
  guarded: {
    // SysLoginController.java:73: the user, and beside it what the user may do.
    'GET /getInfo': () => {
      const { id: userId, username: userName, name: nickName, role } = admin
      return success({
        user: { userId, userName, nickName, avatar: '', admin: true },
        roles: [role],
        permissions: ['*:*:*'],
        isPasswordExpired: false
      })
    }
  },
  // SecurityConfig.java:108 and AuthenticationEntryPointImpl.java:30: 401 in the body, 200 outside.
  unauthorized: ({ path }) => ajax(401, `请求访问：${path}，认证失败，无法访问系统资源`)
}
