/**
 * Yudao, with tenants. Every response has status 200, with a code in its body; 0 is success. Files are
 * those of cn.iocoder.yudao.module.system and cn.iocoder.yudao.framework.
 */
import type { BackendSpec } from '../backend.ts'
import { admin, captchaPicture, captchaText, type Grant, type Response } from '../server.ts'

/** CommonResult.java:72 and 52 */
const success = (data: unknown): Response => ({ status: 200, json: { code: 0, msg: '', data } })
const error = (code: number, msg: string): Response => ({
  status: 200,
  json: { code, msg, data: null }
})

/** ErrorCodeConstants.java:13 and 15 */
const wrongPassword = '登录失败，账号密码不正确'
const wrongCaptcha = '验证码不正确，原因：验证失败'
const noTitle = '请求参数不正确:公告标题不能为空'

/** AuthLoginRespVO.java; times are milliseconds (YudaoJacksonAutoConfiguration.java:42). */
const granted = ({ access, refresh }: Grant) =>
  success({
    userId: admin.id,
    accessToken: access,
    refreshToken: refresh,
    expiresTime: Date.now() + 30 * 60_000
  })

/** CaptchaController.java:32: AJ-Captcha. Its check names the pieces that sign-in then sends. */
const captcha = (repData: unknown, repMsg: string | null = null): Response => ({
  status: 200,
  json: { repCode: repMsg === null ? '0000' : '6111', repMsg, repData, success: repMsg === null }
})

export const yudao: BackendSpec = {
  name: 'yudao',
  // SecurityFrameworkUtils.java:41: the parameter `token` too, `Bearer` or not.
  tokenIn: ({ headers, query }) =>
    (headers.authorization ?? query.get('token') ?? '').replace(/^.*Bearer /, ''),
  wrongPassword,
  wrongCaptcha,
  signIn: {
    at: 'POST /admin-api/system/auth/login',
    refuses: ({ json, captchas, options }) => {
      const [key, text] = String(json?.captchaVerification ?? '').split('---')
      const isRefused = options.captcha && !captchas.take(key, text)
      return isRefused ? error(1_002_000_004, wrongCaptcha) : undefined
    },
    granted,
    refused: error(1_002_000_000, wrongPassword)
  },
  list: {
    path: '/admin-api/system/notice/page',
    fields: { id: 'id', title: 'title' },
    query: { search: 'title', page: 'pageNo', size: 'pageSize' },
    answer: ({ rows, total, page, size }) => {
      if (page < 1) return error(400, '请求参数不正确:页码最小值为 1')
      if (size > 200) return error(400, '请求参数不正确:每页条数最大值为 200')
      return success({ list: rows.map(row => ({ ...row, type: 1, status: 0 })), total })
    }
  },
  save: {
    path: '/admin-api/system/notice/create',
    message: noTitle,
    saved: id => success(id),
    refused: () => error(400, noTitle)
  },
  open: {
    'POST /admin-api/system/captcha/get': ({ captchas }) =>
      captcha({
        token: captchas.show(),
        secretKey: '',
        originalImageBase64: captchaPicture,
        jigsawImageBase64: captchaPicture
      }),
    'POST /admin-api/system/captcha/check': ({ json }) =>
      json?.pointJson === captchaText ? captcha({ result: true }) : captcha(null, '验证失败'),
    // AuthController.java:89: the token stands in the query; OAuth2TokenServiceImpl.java:77.
    'POST /admin-api/system/auth/refresh-token': ({ query, tokens }) => {
      const token = query.get('refreshToken')
      if (token === null) return error(400, '请求参数缺失:refreshToken')
      const grant = tokens.renew(token)
      return grant === undefined ? error(400, '无效的刷新令牌') : granted(grant)
    },
    'POST /admin-api/system/auth/logout': ({ tokens, token }) => {
      tokens.end(token)
      return success(true)
    }
  },
  guarded: {
    'GET /admin-api/system/auth/get-permission-info': () => {
      const { id, username, name: nickname, role } = admin
      const user = { id, nickname, avatar: '', deptId: 100, username }
      return success({ user, roles: [role], permissions: ['system:notice:create'], menus: [] })
    }
  },
  unauthorized: () => error(401, '账号未登录'), // AuthenticationEntryPointImpl.java:32
  refuse: ({ path, headers, isUser }) => {
    // TenantSecurityWebFilter.java:89: without a session, the tenant must be named.
    const isTenant = isUser || /^\d+$/.test(String(headers['tenant-id']))
    const isRefused = path.startsWith('/admin-api/system/auth/') && !isTenant
    return isRefused ? error(400, '请求的租户标识未传递，请进行排查') : undefined
  }
}
