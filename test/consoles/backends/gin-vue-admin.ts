/**
 * gin-vue-admin, server/. Business errors have status 200 and code 7, want of a session has status 401.
 */
import type { BackendSpec } from '../backend.ts'
import { captchaPicture, captchaText, type Response, type TestUser, type Visit } from '../server.ts'

/** response.go:21 */
const ok = (msg: string, data: unknown = {}) => ({ status: 200, json: { code: 0, data, msg } })
const fail = (msg: string) => ({ status: 200, json: { code: 7, data: {}, msg } })

/** sys_user.go:79 and 64 */
const wrongPassword = '用户名不存在或者密码错误'
const wrongCaptcha = '验证码错误'
const noTitle = 'Title值不能为空'

const cookieOf = (token: string, maxAge: number) =>
  `x-token=${token}; Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Strict`

/** sys_user.go of model/system, sys_authority.go */
function userInfo({ id, username, name, role }: TestUser) {
  const authorityId = role === 'admin' ? 888 : 9528
  return {
    ...{ ID: id, uuid: `00000000-0000-0000-0000-00000000000${id}`, headerImg: '', enable: 1 },
    ...{ userName: username, nickName: name, authorityId },
    authority: { authorityId, authorityName: role, defaultRouter: 'dashboard' }
  }
}

function menu(id: number, name: string, title: string, component: string) {
  const meta = { keepAlive: false, defaultMenu: false, title, icon: 'odometer', closeTab: false }
  const entry = { ID: id, parentId: 0, path: name, name, hidden: false, component, sort: id }
  return { ...entry, meta, btns: null, children: null }
}

export const ginVueAdmin: BackendSpec = {
  name: 'gin-vue-admin',
  source: 'flipped-aurora/gin-vue-admin@02f37833255e0e339c3d69199cb5a468f17de9fc',
  credential: 'header:x-token',
  // claims.go:23
  tokenIn: ({ headers }) => {
    const header = headers['x-token']
    if (typeof header === 'string' && header !== '') return header
    return /(?:^|; )x-token=([^;]+)/.exec(headers.cookie ?? '')?.[1]
  },
  wrongPassword,
  wrongCaptcha,
  // sys_user.go:28; verify.go:8 and validator.go:155
  signIn: {
    at: 'POST /base/login',
    refuses: signInRefusal,
    granted: ({ user, access: token }) => ({
      ...ok('登录成功', {
        ...{ user: userInfo(user), token, needChangePassword: false },
        expiresAt: Date.now() + 7 * 86_400_000
      }),
      headers: { 'set-cookie': cookieOf(token, 604_800) }
    }),
    refused: fail(wrongPassword)
  },
  // info.go:132 of the announcement plugin, and PageResult in model/common/response/common.go
  list: {
    path: '/info/getInfoList',
    fields: { id: 'ID', title: 'title' },
    search: 'title',
    page: 'page',
    size: 'pageSize',
    defaultSize: Infinity,
    maxSize: 100,
    answer: ({ rows, total, page, size }) => {
      const list = rows.map(({ id, title }) => ({ ID: id, title }))
      return ok('获取成功', { list, total, page, pageSize: size })
    }
  },
  // validator.go:155: the name of the field stands in the message.
  save: {
    path: '/info/createInfo',
    message: noTitle,
    operations: [],
    titleOf: ({ title }) => title,
    saved: () => ok('创建成功'),
    refused: () => fail(noTitle)
  },
  open: {
    // sys_captcha.go:53
    'POST /base/captcha': ({ captchas, options }) =>
      ok('验证码获取成功', {
        captchaId: captchas.show(),
        picPath: `data:image/png;base64,${captchaPicture}`,
        captchaLength: captchaText.length,
        openCaptcha: options.captcha ?? false
      })
  },
  guarded: {
    'GET /user/getUserInfo': ({ user }) => ok('获取成功', { userInfo: userInfo(user) }),
    'POST /menu/getMenu': () =>
      ok('获取成功', {
        menus: [
          menu(1, 'dashboard', '仪表盘', 'view/dashboard/index.vue'),
          menu(2, 'anInfo', '公告管理', 'plugin/announcement/view/info.vue')
        ]
      }),
    // sys_jwt_blacklist.go:21
    'POST /jwt/jsonInBlacklist': ({ tokens, token }) => {
      tokens.end(token)
      return ok('jwt作废成功')
    }
  },
  // response.go:53 and jwt.go:19: a token that is not valid is taken out of its cookie too.
  unauthorized: ({ token }) => {
    const msg = token === undefined ? '未登录或非法访问，请登录' : '登录已过期，请重新登录'
    const headers = token === undefined ? {} : { 'set-cookie': cookieOf('', 0) }
    return { status: 401, json: { code: 7, data: null, msg }, headers }
  },
  // gin's ShouldBindJSON reads any content type, but the body must be JSON.
  refuse: ({ path, json }) =>
    ['/base/login', '/info/createInfo'].includes(path) && json === undefined
      ? fail('EOF')
      : undefined,
  // gin's own: text/plain with status 404, for another method too.
  otherwise: () => ({ status: 404, text: '404 page not found' })
}

function signInRefusal({ json, captchas, options }: Visit): Response | undefined {
  if (!json.username) return fail('Username值不能为空')
  if (!json.password) return fail('Password值不能为空')
  const isRefused = options.captcha && captchas.take(json.captchaId, json.captcha) !== true
  return isRefused ? fail(wrongCaptcha) : undefined
}
