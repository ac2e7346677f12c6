/**
 * Yudao: YunaiV/ruoyi-vue-pro@e4e460d, with tenants. Every response has status 200, with a code in
 * its body; 0 is success.
 *
 * Files of the comments: AuthController, AdminAuthServiceImpl, OAuth2TokenServiceImpl,
 * NoticeController, CaptchaController, TenantController (cn.iocoder.yudao.module.system),
 * GlobalExceptionHandler, CommonResult, GlobalErrorCodeConstants, TenantSecurityWebFilter,
 * AuthenticationEntryPointImpl (cn.iocoder.yudao.framework).
 */
import {
  captchaPicture,
  captchaText,
  familyOf,
  type Grant,
  items,
  itemsWith,
  pageOf,
  type Request,
  type Response,
  type TestUser,
  userWith,
  type Visit
} from '../backend.ts'

/** CommonResult.java:72 and 52. */
const success = (data: unknown): Response => ({ status: 200, json: { code: 0, msg: '', data } })
const error = (code: number, msg: string): Response => ({
  status: 200,
  json: { code, msg, data: null }
})

const wrongPassword = '登录失败，账号密码不正确'
const wrongCaptcha = '验证码不正确，原因：验证失败'
const noTitle = '请求参数不正确:公告标题不能为空'

/** AuthLoginRespVO.java; times are milliseconds (YudaoJacksonAutoConfiguration.java:42). */
const granted = ({ user, access, refresh }: Grant) =>
  success({
    userId: user.id,
    accessToken: access,
    refreshToken: refresh,
    expiresTime: Date.now() + 30 * 60_000
  })

/** AuthController.java:69 and AdminAuthServiceImpl.java:103. */
function login({ member, captchas, options, tokens }: Visit): Response {
  const [key, text] = (member('captchaVerification') ?? '').split('---')
  if (options.captcha && captchas.take(key, text) !== true) {
    return error(1_002_000_004, wrongCaptcha)
  }
  const user = userWith(member('username'), member('password'))
  return user === undefined ? error(1_002_000_000, wrongPassword) : granted(tokens.issue(user))
}

/** AuthController.java:89: the token stands in the query; OAuth2TokenServiceImpl.java:77. */
function refresh({ query, tokens }: Visit): Response {
  const token = query.get('refreshToken')
  if (token === null) return error(400, '请求参数缺失:refreshToken')
  const grant = tokens.renew(token)
  return grant === undefined ? error(400, '无效的刷新令牌') : granted(grant)
}

/** PageParam.java:28 and NoticeController.java:76. */
function list({ query }: Request): Response {
  const found = itemsWith(query.get('title'))
  const page = Number(query.get('pageNo') ?? 1)
  const size = Number(query.get('pageSize') ?? 10)
  if (page < 1) return error(400, '请求参数不正确:页码最小值为 1')
  if (size > 200) return error(400, '请求参数不正确:每页条数最大值为 200')
  const rows = pageOf(page, size, found).map(item => ({ ...item, type: 1, status: 0 }))
  return success({ list: rows, total: found.length })
}

/** AuthController.java:96. */
const permissionInfo = ({ id, username, name, role }: TestUser) =>
  success({
    user: { id, nickname: name, avatar: '', deptId: 100, username },
    roles: [role],
    permissions: role === 'admin' ? ['system:notice:create'] : [],
    menus: [
      {
        id: 1,
        parentId: 0,
        name: '系统管理',
        path: '/system',
        component: null,
        componentName: null,
        icon: 'ep:tools',
        visible: true,
        keepAlive: true,
        alwaysShow: true,
        children: [
          {
            id: 107,
            parentId: 1,
            name: '通知公告',
            path: 'notice',
            component: 'system/notice/index',
            componentName: 'SystemNotice',
            icon: 'ep:takeaway-box',
            visible: true,
            keepAlive: true,
            alwaysShow: true
          }
        ]
      }
    ]
  })

/** CaptchaController.java:32: AJ-Captcha. Its check names the pieces that sign-in then sends. */
const captcha = (repData: unknown, repMsg: string | null = null): Response => ({
  status: 200,
  json: { repCode: repMsg === null ? '0000' : '6111', repMsg, repData, success: repMsg === null }
})

export const backend = familyOf({
  name: 'yudao',
  source: 'YunaiV/ruoyi-vue-pro@e4e460d563a3b6f0b5255f9b061b258128ffd822',
  list: {
    path: '/admin-api/system/notice/page',
    fields: { id: 'id', title: 'title' },
    search: 'title'
  },
  save: { path: '/admin-api/system/notice/create', message: noTitle, operations: [] },
  // ErrorCodeConstants.java:13 and 15.
  wrongPassword,
  wrongCaptcha,
  prefix: '/admin-api',
  // SecurityFrameworkUtils.java:41: the parameter `token` too, `Bearer` or not.
  tokenIn: ({ headers, query }) => {
    const value = headers.authorization ?? query.get('token') ?? ''
    return value === '' ? undefined : value.replace(/^.*Bearer /, '')
  },
  // AuthenticationEntryPointImpl.java:32.
  unauthorized: () => error(401, '账号未登录'),
  refuse: ({ endpoint, headers, user, text, type }) => {
    // TenantSecurityWebFilter.java:89: without a session, the tenant must be named.
    const isTenant = /^\d+$/.test(String(headers['tenant-id']))
    if (endpoint.startsWith('/system/auth/') && user === undefined && !isTenant) {
      return error(400, '请求的租户标识未传递，请进行排查')
    }
    return text === '' || type.startsWith('application/json')
      ? undefined
      : error(400, `请求类型不正确:Content type '${type}' not supported`)
  },
  open: {
    'POST /system/captcha/get': ({ captchas }) =>
      captcha({
        token: captchas.show(),
        secretKey: '',
        originalImageBase64: captchaPicture,
        jigsawImageBase64: captchaPicture
      }),
    'POST /system/captcha/check': ({ member }) =>
      member('pointJson') === captchaText ? captcha({ result: true }) : captcha(null, '验证失败'),
    // TenantController.java:49 and 69: for everybody, without a tenant.
    'GET /system/tenant/get-id-by-name': ({ query }) =>
      success(query.get('name') === '芋道源码' ? 1 : null),
    'GET /system/tenant/get-by-website': () => success(null),
    'POST /system/auth/login': login,
    'POST /system/auth/refresh-token': refresh,
    // AuthController.java:76.
    'POST /system/auth/logout': ({ tokens, token }) => {
      tokens.end(token ?? '')
      return success(true)
    }
  },
  guarded: {
    'GET /system/auth/get-permission-info': ({ user }) => permissionInfo(user),
    'GET /system/dict-data/simple-list': () => success([]),
    'GET /system/notice/page': list,
    // NoticeSaveReqVO.java:18 and GlobalExceptionHandler.java:161.
    'POST /system/notice/create': ({ member }) =>
      member('title')?.trim() ? success(items.length + 1) : error(400, noTitle)
  },
  // GlobalExceptionHandler.java; GlobalErrorCodeConstants.java:24.
  otherwise: ({ method, path }, knownPath) =>
    knownPath
      ? error(405, `请求方法不正确:Request method '${method}' not supported`)
      : error(404, `请求地址不存在:${path.slice(1)}`)
})
