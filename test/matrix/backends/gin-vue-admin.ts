/**
 * gin-vue-admin: flipped-aurora/gin-vue-admin@02f3783, server/. Business errors have status 200
 * and code 7, want of a session has status 401.
 *
 * Files of the comments: api/v1/system/{sys_user,sys_captcha,sys_jwt_blacklist,sys_menu}.go,
 * middleware/jwt.go, utils/{claims,verify,validator}.go, model/common/response/response.go,
 * plugin/announcement/api/info.go.
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

/** response.go:21. */
const result = (code: number, data: unknown, msg: string): Response => ({
  status: 200,
  json: { code, data, msg }
})
const ok = (msg: string, data: unknown = {}) => result(0, data, msg)
const fail = (msg: string) => result(7, {}, msg)

/** response.go:53 and jwt.go:19: a token that is not valid is taken out of its cookie too. */
const guarded = guard(request => {
  const hasToken = tokenIn(request) !== undefined
  const msg = hasToken ? '登录已过期，请重新登录' : '未登录或非法访问，请登录'
  return {
    status: 401,
    json: { code: 7, data: null, msg },
    ...(hasToken && {
      headers: { 'set-cookie': 'x-token=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict' }
    })
  }
})

/** claims.go:23. */
function tokenIn({ headers }: Request): string | undefined {
  const header = headers['x-token']
  if (typeof header === 'string' && header !== '') return header
  return /(?:^|; )x-token=([^;]+)/.exec(headers.cookie ?? '')?.[1]
}

/** gin's ShouldBindJSON reads any content type, but the body must be JSON. */
const parsed =
  (handle: Handler): Handler =>
  (request, caller) =>
    request.json === undefined ? fail('EOF') : handle(request, caller)

/** sys_user.go of model/system: `ID`, `userName`, `nickName`; sys_authority.go. */
const userInfo = ({ id, username, name, role }: TestUser) => ({
  ID: id,
  uuid: `00000000-0000-0000-0000-00000000000${id}`,
  userName: username,
  nickName: name,
  headerImg: '',
  authorityId: role === 'admin' ? 888 : 9528,
  authority: {
    authorityId: role === 'admin' ? 888 : 9528,
    authorityName: role,
    defaultRouter: 'dashboard'
  },
  enable: 1
})

/** info.go:132 of the announcement plugin, and PageResult in model/common/response/common.go. */
function list({ query }: Request): Response {
  const found = itemsWith(query.get('title'))
  const page = Number(query.get('page') ?? 0)
  const pageSize = Number(query.get('pageSize') ?? 0)
  // info.go of the plugin's service: a limit of 0 reads all.
  const rows = pageSize <= 0 ? found : pageOf(Math.max(page, 1), Math.min(pageSize, 100), found)
  return ok('获取成功', {
    list: rows.map(({ id, title }) => ({ ID: id, title })),
    total: found.length,
    page,
    pageSize
  })
}

const menu = (id: number, name: string, title: string, component: string) => ({
  ID: id,
  parentId: 0,
  path: name,
  name,
  hidden: false,
  component,
  sort: id,
  meta: {
    keepAlive: false,
    defaultMenu: false,
    title,
    icon: 'odometer',
    closeTab: false
  },
  btns: null,
  children: null
})
const menus = [
  menu(1, 'dashboard', '仪表盘', 'view/dashboard/index.vue'),
  menu(2, 'anInfo', '公告管理', 'plugin/announcement/view/info.vue')
]

const endpointsOf = (
  tokens: Tokens,
  { captcha = false }: BackendOptions
): Record<string, Handler> => {
  const captchas = new Captchas()
  return {
    // sys_captcha.go:53.
    'POST /base/captcha': () =>
      ok('验证码获取成功', {
        captchaId: captchas.show(),
        picPath: `data:image/png;base64,${captchaPicture}`,
        captchaLength: captchaText.length,
        openCaptcha: captcha
      }),
    // sys_user.go:28; verify.go:8 and validator.go:155.
    'POST /base/login': parsed(({ json }) => {
      const [username = '', password = ''] = [textOf(json, 'username'), textOf(json, 'password')]
      if (username === '') return fail('Username值不能为空')
      if (password === '') return fail('Password值不能为空')
      const key = textOf(json, 'captchaId')
      if (captcha && captchas.take(key, textOf(json, 'captcha')) !== true) return fail('验证码错误')
      const user = userWith(username, password)
      if (user === undefined) return fail('用户名不存在或者密码错误')
      const { access } = tokens.issue(user)
      const response = ok('登录成功', {
        user: userInfo(user),
        token: access,
        expiresAt: Date.now() + 7 * 86_400_000,
        needChangePassword: false
      })
      const cookie = `x-token=${access}; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict`
      return { ...response, headers: { 'set-cookie': cookie } }
    }),
    'GET /user/getUserInfo': guarded((_, { user }) => ok('获取成功', { userInfo: userInfo(user) })),
    'POST /menu/getMenu': guarded(() => ok('获取成功', { menus })),
    // sys_jwt_blacklist.go:21.
    'POST /jwt/jsonInBlacklist': guarded((_, { token }) => {
      tokens.end(token)
      return ok('jwt作废成功')
    }),
    'GET /info/getInfoList': guarded(list),
    // validator.go:155: the name of the field stands in the message.
    'POST /info/createInfo': guarded(
      parsed(({ json }) =>
        (textOf(json, 'title') ?? '') === '' ? fail('Title值不能为空') : ok('创建成功')
      )
    )
  }
}

export const backend: BackendFamily = {
  name: 'gin-vue-admin',
  source: 'flipped-aurora/gin-vue-admin@02f37833255e0e339c3d69199cb5a468f17de9fc',
  list: { path: '/info/getInfoList', fields: { id: 'ID', title: 'title' }, search: 'title' },
  save: {
    method: 'POST',
    path: '/info/createInfo',
    message: 'Title值不能为空',
    body: title => ({ title }),
    operations: []
  },
  loginName: ({ username }) => username,
  // sys_user.go:79 and 64.
  wrongPassword: '用户名不存在或者密码错误',
  wrongCaptcha: '验证码错误',
  refreshes: false,
  start: (cleanUp, options = {}): Promise<Backend> => {
    const tokens = new Tokens()
    return serveFamily(cleanUp, {
      family: backend,
      tokens,
      tokenIn,
      endpoints: endpointsOf(tokens, options),
      // gin's own: text/plain with status 404, for another method too.
      otherwise: () => ({ status: 404, text: '404 page not found' })
    })
  }
}
