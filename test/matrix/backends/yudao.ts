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
  type Backend,
  type BackendFamily,
  type BackendOptions,
  captchaPicture,
  Captchas,
  captchaText,
  guard,
  type Handler,
  items,
  itemsWith,
  pageOf,
  type Request,
  type Response,
  serveFamily,
  type TestUser,
  textOf,
  Tokens,
  userWith
} from '../backend.ts'

/** CommonResult.java:72 and 52. */
const success = (data: unknown): Response => ({ status: 200, json: { code: 0, msg: '', data } })
const error = (code: number, msg: string): Response => ({
  status: 200,
  json: { code, msg, data: null }
})

/** AuthenticationEntryPointImpl.java:32. */
const guarded = guard(() => error(401, '账号未登录'))

/** TenantSecurityWebFilter.java:89: without a session, the tenant must be named. */
const ofTenant =
  (handle: Handler): Handler =>
  (request, caller) =>
    caller === undefined && !/^\d+$/.test(String(request.headers['tenant-id']))
      ? error(400, '请求的租户标识未传递，请进行排查')
      : handle(request, caller)

const parsed =
  (handle: Handler): Handler =>
  (request, caller) => {
    const type = request.headers['content-type'] ?? ''
    return type.startsWith('application/json')
      ? handle(request, caller)
      : error(400, `请求类型不正确:Content type '${type}' not supported`)
  }

/** AuthLoginRespVO.java; times are milliseconds (YudaoJacksonAutoConfiguration.java:42). */
const tokensOf = (user: TestUser, { access, refresh }: { access: string; refresh: string }) => ({
  userId: user.id,
  accessToken: access,
  refreshToken: refresh,
  expiresTime: Date.now() + 30 * 60_000
})

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
    user: {
      id,
      nickname: name,
      avatar: '',
      deptId: 100,
      username
    },
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
const captchaEndpoints = (captchas: Captchas): Record<string, Handler> => ({
  'POST /system/captcha/get': parsed(() => ({
    status: 200,
    json: {
      repCode: '0000',
      repMsg: null,
      repData: {
        token: captchas.show(),
        secretKey: '',
        originalImageBase64: captchaPicture,
        jigsawImageBase64: captchaPicture
      },
      success: true
    }
  })),
  'POST /system/captcha/check': parsed(({ json }) => {
    const fits = textOf(json, 'pointJson') === captchaText
    return {
      status: 200,
      json: fits
        ? { repCode: '0000', repMsg: null, repData: { result: true }, success: true }
        : { repCode: '6111', repMsg: '验证失败', repData: null, success: false }
    }
  })
})

const endpointsOf = (
  tokens: Tokens,
  { captcha = false }: BackendOptions
): Record<string, Handler> => {
  const captchas = new Captchas()
  return {
    ...captchaEndpoints(captchas),
    // TenantController.java:49 and 69: for everybody, without a tenant.
    'GET /system/tenant/get-id-by-name': ({ query }) =>
      success(query.get('name') === '芋道源码' ? 1 : null),
    'GET /system/tenant/get-by-website': () => success(null),
    // AuthController.java:69 and AdminAuthServiceImpl.java:103.
    'POST /system/auth/login': ofTenant(
      parsed(({ json }) => {
        const [key, text] = (textOf(json, 'captchaVerification') ?? '').split('---')
        if (captcha && captchas.take(key, text) !== true) {
          return error(1_002_000_004, '验证码不正确，原因：验证失败')
        }
        const user = userWith(textOf(json, 'username'), textOf(json, 'password'))
        if (user === undefined) return error(1_002_000_000, '登录失败，账号密码不正确')
        return success(tokensOf(user, tokens.issue(user)))
      })
    ),
    // AuthController.java:89: the token stands in the query; OAuth2TokenServiceImpl.java:77.
    'POST /system/auth/refresh-token': ofTenant(({ query }) => {
      const refresh = query.get('refreshToken')
      if (refresh === null) return error(400, '请求参数缺失:refreshToken')
      const grant = tokens.renew(refresh)
      if (grant === undefined) return error(400, '无效的刷新令牌')
      return success(tokensOf(grant.user, grant))
    }),
    // AuthController.java:76.
    'POST /system/auth/logout': ofTenant((_, caller) => {
      if (caller !== undefined) tokens.end(caller.token)
      return success(true)
    }),
    'GET /system/auth/get-permission-info': guarded((_, { user }) => permissionInfo(user)),
    'GET /system/dict-data/simple-list': guarded(() => success([])),
    'GET /system/notice/page': guarded(list),
    // NoticeSaveReqVO.java:18 and GlobalExceptionHandler.java:161.
    'POST /system/notice/create': guarded(
      parsed(({ json }) =>
        (textOf(json, 'title') ?? '').trim() === ''
          ? error(400, '请求参数不正确:公告标题不能为空')
          : success(items.length + 1)
      )
    )
  }
}

export const backend: BackendFamily = {
  name: 'yudao',
  source: 'YunaiV/ruoyi-vue-pro@e4e460d563a3b6f0b5255f9b061b258128ffd822',
  list: {
    path: '/admin-api/system/notice/page',
    fields: { id: 'id', title: 'title' },
    search: 'title'
  },
  save: {
    method: 'POST',
    path: '/admin-api/system/notice/create',
    message: '请求参数不正确:公告标题不能为空',
    body: title => ({ title, type: 1, status: 0 }),
    operations: []
  },
  loginName: ({ username }) => username,
  // ErrorCodeConstants.java:13 and 15.
  wrongPassword: '登录失败，账号密码不正确',
  wrongCaptcha: '验证码不正确，原因：验证失败',
  refreshes: true,
  start: (cleanUp, options = {}): Promise<Backend> => {
    const tokens = new Tokens()
    return serveFamily(cleanUp, {
      family: backend,
      tokens,
      prefix: '/admin-api',
      // SecurityFrameworkUtils.java:41: the parameter `token` too, `Bearer` or not.
      tokenIn: ({ headers, query }) => {
        const value = headers.authorization ?? query.get('token') ?? ''
        return value === '' ? undefined : value.replace(/^.*Bearer /, '')
      },
      endpoints: endpointsOf(tokens, options),
      // GlobalExceptionHandler.java; GlobalErrorCodeConstants.java:24.
      otherwise: ({ method, path }, knownPath) =>
        knownPath
          ? error(405, `请求方法不正确:Request method '${method}' not supported`)
          : error(404, `请求地址不存在:${path.slice(1)}`)
    })
  }
}
