/**
 * gin-vue-admin: flipped-aurora/gin-vue-admin@02f3783, server/. Business errors have status 200
 * and code 7, want of a session has status 401.
 *
 * Files of the comments: api/v1/system/{sys_user,sys_captcha,sys_jwt_blacklist,sys_menu}.go,
 * middleware/jwt.go, utils/{claims,verify,validator}.go, model/common/response/response.go,
 * plugin/announcement/api/info.go.
 */
import {
  captchaPicture,
  captchaText,
  familyOf,
  itemsWith,
  pageOf,
  type Request,
  type Response,
  type TestUser,
  userWith,
  type Visit
} from '../backend.ts'

/** response.go:21. */
const ok = (msg: string, data: unknown = {}) => ({ status: 200, json: { code: 0, data, msg } })
const fail = (msg: string) => ({ status: 200, json: { code: 7, data: {}, msg } })

const wrongPassword = '用户名不存在或者密码错误'
const wrongCaptcha = '验证码错误'
const noTitle = 'Title值不能为空'

const cookieOf = (token: string, maxAge: number) =>
  `x-token=${token}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict`

/** claims.go:23. */
function tokenIn({ headers }: Request): string | undefined {
  const header = headers['x-token']
  if (typeof header === 'string' && header !== '') return header
  return /(?:^|; )x-token=([^;]+)/.exec(headers.cookie ?? '')?.[1]
}

/** sys_user.go of model/system: `ID`, `userName`, `nickName`; sys_authority.go. */
function userInfo({ id, username, name, role }: TestUser) {
  const authorityId = role === 'admin' ? 888 : 9528
  return {
    ID: id,
    uuid: `00000000-0000-0000-0000-00000000000${id}`,
    userName: username,
    nickName: name,
    headerImg: '',
    authorityId,
    authority: { authorityId, authorityName: role, defaultRouter: 'dashboard' },
    enable: 1
  }
}

/** sys_user.go:28; verify.go:8 and validator.go:155. */
function login({ member, captchas, options, tokens }: Visit): Response {
  const [username = '', password = ''] = [member('username'), member('password')]
  if (username === '') return fail('Username值不能为空')
  if (password === '') return fail('Password值不能为空')
  if (options.captcha && captchas.take(member('captchaId'), member('captcha')) !== true) {
    return fail(wrongCaptcha)
  }
  const user = userWith(username, password)
  if (user === undefined) return fail(wrongPassword)
  const { access: token } = tokens.issue(user)
  const expiresAt = Date.now() + 7 * 86_400_000
  const data = { user: userInfo(user), token, expiresAt, needChangePassword: false }
  return { ...ok('登录成功', data), headers: { 'set-cookie': cookieOf(token, 604_800) } }
}

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
  meta: { keepAlive: false, defaultMenu: false, title, icon: 'odometer', closeTab: false },
  btns: null,
  children: null
})
const menus = [
  menu(1, 'dashboard', '仪表盘', 'view/dashboard/index.vue'),
  menu(2, 'anInfo', '公告管理', 'plugin/announcement/view/info.vue')
]

export const backend = familyOf({
  name: 'gin-vue-admin',
  credential: 'header:x-token',
  source: 'flipped-aurora/gin-vue-admin@02f37833255e0e339c3d69199cb5a468f17de9fc',
  list: { path: '/info/getInfoList', fields: { id: 'ID', title: 'title' }, search: 'title' },
  save: { path: '/info/createInfo', message: noTitle, operations: [] },
  // sys_user.go:79 and 64.
  wrongPassword,
  wrongCaptcha,
  tokenIn,
  // response.go:53 and jwt.go:19: a token that is not valid is taken out of its cookie too.
  unauthorized: request => {
    const hasToken = tokenIn(request) !== undefined
    const msg = hasToken ? '登录已过期，请重新登录' : '未登录或非法访问，请登录'
    const headers = hasToken ? { 'set-cookie': cookieOf('', 0) } : {}
    return { status: 401, json: { code: 7, data: null, msg }, headers }
  },
  // gin's ShouldBindJSON reads any content type, but the body must be JSON.
  refuse: ({ endpoint, json }) =>
    ['/base/login', '/info/createInfo'].includes(endpoint) && json === undefined
      ? fail('EOF')
      : undefined,
  open: {
    // sys_captcha.go:53.
    'POST /base/captcha': ({ captchas, options }) =>
      ok('验证码获取成功', {
        captchaId: captchas.show(),
        picPath: `data:image/png;base64,${captchaPicture}`,
        captchaLength: captchaText.length,
        openCaptcha: options.captcha ?? false
      }),
    'POST /base/login': login
  },
  guarded: {
    'GET /user/getUserInfo': ({ user }) => ok('获取成功', { userInfo: userInfo(user) }),
    'POST /menu/getMenu': () => ok('获取成功', { menus }),
    // sys_jwt_blacklist.go:21.
    'POST /jwt/jsonInBlacklist': ({ tokens, token }) => {
      tokens.end(token)
      return ok('jwt作废成功')
    },
    'GET /info/getInfoList': list,
    // validator.go:155: the name of the field stands in the message.
    'POST /info/createInfo': ({ member }) => (member('title') ? ok('创建成功') : fail(noTitle))
  },
  // gin's own: text/plain with status 404, for another method too.
  otherwise: () => ({ status: 404, text: '404 page not found' })
})
