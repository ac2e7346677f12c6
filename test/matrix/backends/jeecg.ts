/**
 * JeecgBoot: jeecgboot/JeecgBoot@cb4d606, jeecg-boot/. Business errors have status 200 with a code
 * in the body, want of a session has status 401.
 *
 * Files of the comments: LoginController, SysAnnouncementController, SysPermissionController
 * (org.jeecg.modules.system.controller), Result, JwtFilter, JwtUtil, JeecgBootExceptionHandler,
 * AesEncryptUtil, SignAuthInterceptor, SignUtil, HttpUtils (org.jeecg).
 */
import { createDecipheriv, createHash } from 'node:crypto'
import {
  captchaPicture,
  familyOf,
  itemsWith,
  pageOf,
  type Request,
  type Response,
  type TestUser,
  users,
  userWith,
  type Visit
} from '../backend.ts'

/** application-dev.yml:7. */
const contextPath = '/jeecg-boot'

/** Result.java:27. `new Result()` has code 0, `ok()` 200, an error 500. */
const result = (success: boolean, code: number, message: string, value: unknown = null) => ({
  status: 200,
  json: { success, message, code, result: value, timestamp: Date.now() }
})
const found = (value: unknown) => result(true, 0, '', value)
const done = (message: string, value: unknown = null) => result(true, 200, message, value)
const error = (message: string, code = 500) => result(false, code, message)

const wrongPassword = '用户名或密码错误'
const wrongCaptcha = '验证码错误'
const noTitle = '校验失败！标题不能为空'

/** AesEncryptUtil.java:42: a password that is not AES with the fixed key counts as plain text. */
function resolvePassword(password: string): string {
  try {
    const decipher = createDecipheriv('aes-128-cbc', '1234567890adbcde', '1234567890hjlkew')
    return decipher.update(password, 'base64', 'utf8') + decipher.final('utf8')
  } catch {
    return password
  }
}

/** HttpUtils.java:38 and 169: the query is decoded before it is split. */
function signedParameters({ method, path, query, json }: Request): Map<string, string> {
  const parameters = new Map<string, string>()
  const last = path.slice(path.lastIndexOf('/') + 1)
  if (last.includes(',')) parameters.set('x-path-variable', decodeURIComponent(last))
  for (const pair of decodeURIComponent(query.toString().replaceAll('+', ' ')).split('&')) {
    const end = pair.indexOf('=')
    if (end !== -1) parameters.set(pair.slice(0, end), pair.slice(end + 1))
  }
  if (method === 'GET') return parameters
  for (const [name, value] of Object.entries(json ?? {})) parameters.set(name, String(value))
  return parameters
}

/** SignUtil.java:51; the secret stands in application-dev.yml:269. */
function signOf(request: Request): string {
  const parameters = [...signedParameters(request)].filter(([name]) => name !== '_t')
  const sorted = parameters.sort(([a], [b]) => (a < b ? -1 : 1))
  const plain = `${JSON.stringify(Object.fromEntries(sorted))}dd05f1c54d63749eda95f9fa6d49v442a`
  return createHash('md5').update(plain).digest('hex').toUpperCase()
}

/** SignAuthInterceptor.java:70, after JwtFilter. */
function refuseSign(request: Request): Response | undefined {
  const { 'x-timestamp': time, 'x-sign': sign } = request.headers
  if (typeof time !== 'string') return error('Sign签名校验失败，请求参数不完整！')
  if (Date.now() - Number(time) > 300_000) return error('签名验证失败，请求时效性验证失败！')
  return sign === signOf(request) ? undefined : error('Sign签名校验失败！')
}

/** SysAnnouncementController.java:115; `titile` is the family's own spelling. */
function list({ query }: Request): Response {
  const notices = itemsWith(query.get('titile'))
  const current = Number(query.get('pageNo') ?? 1)
  const size = Number(query.get('pageSize') ?? 10)
  const records = pageOf(current, size, notices).map(({ id, title }) => ({
    id: String(id),
    titile: title
  }))
  return found({
    records,
    total: notices.length,
    size,
    current,
    pages: Math.ceil(notices.length / size)
  })
}

const userInfo = ({ id, username, name }: TestUser) => ({
  id: String(id),
  username,
  realname: name,
  avatar: null,
  homePath: null,
  loginTenantId: 0
})

/** SysPermissionController.java:244. */
const permissions = found({
  menu: [
    {
      path: '/isystem',
      name: 'isystem',
      component: 'layouts/RouteView',
      route: '1',
      hidden: false,
      meta: { title: '系统管理', icon: 'ant-design:setting' },
      children: [
        {
          path: '/isystem/notice',
          name: 'isystem-notice',
          component: 'system/notice/index',
          route: '1',
          hidden: false,
          meta: { title: '通知公告' }
        }
      ]
    }
  ],
  auth: [],
  codeList: ['system:sysAnnouncement:add'],
  allAuth: [],
  sysSafeMode: false
})

/** LoginController.java:84 and 928: code 412 for a wrong captcha, which may be tried again. */
function login({ member, captchas, options, tokens }: Visit): Response {
  const text = member('captcha')
  if (options.captcha && text === undefined) return error('验证码无效')
  if (options.captcha && !captchas.match(member('checkKey'), text)) return error(wrongCaptcha, 412)
  const username = member('username')
  if (!Object.values(users).some(user => user.username === username)) {
    return error('该用户不存在，请注册')
  }
  const user = userWith(username, resolvePassword(member('password') ?? ''))
  if (user === undefined) return error(wrongPassword)
  return done('登录成功', {
    token: tokens.issue(user).access,
    tenantList: [],
    userInfo: userInfo(user),
    departs: [],
    multi_depart: 0
  })
}

/** SignAuthConfiguration.java:31; the default is of application-dev.yml:271. */
const defaultSignUrls = ['/sys/dict/getDictItems/*']

export const backend = familyOf({
  name: 'jeecg',
  credential: 'header:x-access-token',
  source: 'jeecgboot/JeecgBoot@cb4d60610d917988742bcf4b212787e028be2564',
  list: {
    path: `${contextPath}/sys/annountCement/list`,
    fields: { id: 'id', title: 'titile' },
    search: 'titile'
  },
  save: {
    path: `${contextPath}/sys/annountCement/add`,
    message: noTitle,
    operations: [{ rename: { title: 'titile' } }]
  },
  // LoginController.java:117 and 946.
  wrongPassword,
  wrongCaptcha,
  prefix: contextPath,
  // JwtFilter.java:75.
  tokenIn: ({ headers, query }) => {
    const header = headers['x-access-token']
    return typeof header === 'string' ? header : (query.get('token') ?? undefined)
  },
  // JwtFilter.java:64 and JwtUtil.java:56: the status is 401 as well.
  unauthorized: () => ({ ...error('Token失效，请重新登录!', 401), status: 401 }),
  refuse: visit => {
    const { endpoint, options, text, type } = visit
    if ((options.signUrls ?? defaultSignUrls).includes(endpoint)) return refuseSign(visit)
    return text === '' || type.startsWith('application/json')
      ? undefined
      : error(`操作失败，Content-Type '${type}' is not supported`)
  },
  open: {
    'POST /sys/login': login,
    // LoginController.java:183: by any method; the token only as X-Access-Token.
    'GET /sys/logout': ({ headers, tokens, user, token }) => {
      if (headers['x-access-token'] === undefined) return error('退出登录失败！')
      if (user === undefined) return error('Token无效!')
      tokens.end(token ?? '')
      return done('退出登录成功！', '退出登录成功！')
    },
    // LoginController.java:611. The path ends with a key that the console makes up.
    'GET /sys/randomImage/*': ({ captchas, path }) => {
      captchas.show(path.slice(path.lastIndexOf('/') + 1))
      return found(`data:image/jpg;base64,${captchaPicture}`)
    }
  },
  guarded: {
    // LoginController.java:142.
    'GET /sys/user/getUserInfo': ({ user }) =>
      done('', { userInfo: userInfo(user), sysAllDictItems: {} }),
    'GET /sys/permission/getUserPermissionByToken': () => permissions,
    'GET /sys/annountCement/list': list,
    // JeecgBootExceptionHandler.java:56: the messages of all fields, without their names.
    'POST /sys/annountCement/add': ({ member }) =>
      member('titile')?.trim() ? done('添加成功！') : error(noTitle),
    // SysDictController.java:186: a dictionary, or a table with the columns of its texts and values.
    'GET /sys/dict/getDictItems/*': () => done('', [{ value: '1', text: 'One' }])
  },
  // JeecgBootExceptionHandler.java:158 and 114.
  otherwise: ({ method }, knownPath) =>
    knownPath
      ? error(`不支持${method}请求方法，支持以下`, 405)
      : error('路径不存在，请检查路径是否正确', 404)
})
