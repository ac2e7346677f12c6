/** gin-vue-admin, server/. Business errors have status 200 and code 7; no session has 401. */
import type { BackendSpec } from '../backend.ts'
import { admin, captchaPicture, captchaText } from '../server.ts'

/** response.go:21 */
const ok = (msg: string, data: unknown = {}) => ({ status: 200, json: { code: 0, data, msg } })
const fail = (msg: string) => ({ status: 200, json: { code: 7, data: {}, msg } })

/** sys_user.go:79 and 64 */
const wrongPassword = '用户名不存在或者密码错误'
const wrongCaptcha = '验证码错误'
const noTitle = 'Title值不能为空'

export const ginVueAdmin: BackendSpec = {
  name: 'gin-vue-admin',
  credential: 'header:x-token',
  tokenIn: ({ headers }) => headers['x-token']?.toString(), // claims.go:23
  wrongPassword,
  wrongCaptcha,
  signIn: {
    at: 'POST /base/login',
    refuses: ({ json, captchas, options }) => {
      const isRefused = options.captcha && !captchas.take(json?.captchaId, json?.captcha)
      return isRefused ? fail(wrongCaptcha) : undefined
    },
    granted: ({ access: token }) => {
      const { id, username, name, role } = admin
      const authorityId = 888
      const authority = { authorityId, authorityName: role, defaultRouter: 'dashboard' }
      const user = { ID: id, userName: username, nickName: name, authorityId, authority }
      return ok('登录成功', { user, token, expiresAt: Date.now() + 7 * 86_400_000 })
    },
    refused: fail(wrongPassword)
  },
  // info.go:132 of the announcement plugin, and PageResult in model/common/response/common.go
  list: {
    path: '/info/getInfoList',
    fields: { id: 'ID', title: 'title' },
    query: { search: 'title', page: 'page', size: 'pageSize' },
    defaultSize: Infinity,
    maxSize: 100,
    answer: ({ rows: list, total, page, size: pageSize }) =>
      ok('获取成功', { list, total, page, pageSize })
  },
  // validator.go:155: the name of the field stands in the message.
  save: {
    path: '/info/createInfo',
    message: noTitle,
    saved: () => ok('创建成功'),
    refused: () => fail(noTitle)
  },
  open: {
    'POST /base/captcha': ({ captchas, options }) =>
      ok('验证码获取成功', {
        captchaId: captchas.show(),
        picPath: `data:image/png;base64,${captchaPicture}`,
        captchaLength: captchaText.length,
        openCaptcha: options.captcha ?? false
      })
  },
  guarded: {
    'POST /jwt/jsonInBlacklist': ({ tokens, token }) => {
      tokens.end(token)
      return ok('jwt作废成功')
    }
  },
  unauthorized: ({ token }) => {
    const msg = token === undefined ? '未登录或非法访问，请登录' : '登录已过期，请重新登录'
    return { status: 401, json: { code: 7, data: null, msg } }
  }
}
