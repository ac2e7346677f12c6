/** JeecgBoot, jeecg-boot/. Business errors have status 200 and a code; no session has 401. */
import { createDecipheriv, createHash } from 'node:crypto'
import type { BackendSpec } from '../backend.ts'
import { admin, captchaPicture, type Response, type Visit } from '../server.ts'

/** Result.java:27. `new Result()` has code 0, `ok()` 200, an error 500. */
const result = (success: boolean, code: number, message: string, value: unknown = null) => ({
  status: 200,
  json: { success, message, code, result: value, timestamp: Date.now() }
})
const found = (value: unknown) => result(true, 0, '', value)
const done = (message: string, value: unknown = null) => result(true, 200, message, value)
const error = (message: string, code = 500) => result(false, code, message)

/** LoginController.java:117 and 946 */
const wrongPassword = '用户名或密码错误'
const wrongCaptcha = '验证码错误'
const noTitle = '校验失败！标题不能为空'

export const jeecg: BackendSpec = {
  name: 'jeecg',
  credential: 'header:x-access-token',
  tokenIn: ({ headers, query }) => {
    const header = headers['x-access-token']
    return typeof header === 'string' ? header : (query.get('token') ?? undefined)
  },
  wrongPassword,
  wrongCaptcha,
  signIn: {
    at: 'POST /jeecg-boot/sys/login',
    fieldsOf: ({ json }) => ({ ...json, password: resolvePassword(String(json?.password)) }),
    // LoginController.java:84 and 928: code 412 for a wrong captcha.
    refuses: ({ json, captchas, options }) => {
      const isRefused = options.captcha && !captchas.take(json?.checkKey, json?.captcha)
      return isRefused ? error(wrongCaptcha, 412) : undefined
    },
    granted: ({ access: token }) => {
      const { id, username, name: realname } = admin
      const userInfo = { id: String(id), username, realname, avatar: null, loginTenantId: 0 }
      return done('登录成功', { token, tenantList: [], userInfo, departs: [], multi_depart: 0 })
    },
    refused: error(wrongPassword)
  },
  // SysAnnouncementController.java:115; `titile` is its own spelling.
  list: {
    path: '/jeecg-boot/sys/annountCement/list',
    fields: { id: 'id', title: 'titile' },
    query: { search: 'titile', page: 'pageNo', size: 'pageSize' },
    answer: ({ rows: records, total, page: current, size, last: pages }) =>
      found({ records, total, size, current, pages })
  },
  // JeecgBootExceptionHandler.java:56: the messages of all fields, without their names.
  save: {
    path: '/jeecg-boot/sys/annountCement/add',
    message: noTitle,
    saved: () => done('添加成功！'),
    refused: () => error(noTitle)
  },
  open: {
    // LoginController.java:183: the token only as X-Access-Token.
    'GET /jeecg-boot/sys/logout': ({ headers, tokens, isUser, token }) => {
      if (headers['x-access-token'] === undefined) return error('退出登录失败！')
      if (!isUser) return error('Token无效!')
      tokens.end(token)
      return done('退出登录成功！', '退出登录成功！')
    },
    // LoginController.java:611. The path ends with a key that the console makes up.
    'GET /jeecg-boot/sys/randomImage/*': ({ captchas, path }) => {
      captchas.show(path.slice(path.lastIndexOf('/') + 1))
      return found(`data:image/jpg;base64,${captchaPicture}`)
    }
  },
  guarded: {
    // SysDictController.java:186: a dictionary, or a table with the columns of its texts and values.
    'GET /jeecg-boot/sys/dict/getDictItems/*': () => done('', [{ value: '1', text: 'One' }])
  },
  // JwtFilter.java:64 and JwtUtil.java:56: the status is 401 as well.
  unauthorized: () => ({ ...error('Token失效，请重新登录!', 401), status: 401 }),
  refuse: visit => {
    // SignAuthConfiguration.java:31; the default is of application-dev.yml:271.
    const { signUrls = ['/sys/dict/getDictItems/*'] } = visit.options
    const isSigned = signUrls.some(url => visit.endpoint === `/jeecg-boot${url}`)
    return isSigned ? refuseSign(visit) : undefined
  }
}

/** AesEncryptUtil.java:42: a password that is not AES with the fixed key counts as plain text. */
function resolvePassword(password: string): string {
  try {
    const decipher = createDecipheriv('aes-128-cbc', '1234567890adbcde', '1234567890hjlkew')
    return decipher.update(password, 'base64', 'utf8') + decipher.final('utf8')
  } catch {
    return password
  }
}

/** SignAuthInterceptor.java:70, after JwtFilter */
function refuseSign(visit: Visit): Response | undefined {
  const { 'x-timestamp': time, 'x-sign': sign } = visit.headers
  if (typeof time !== 'string') return error('Sign签名校验失败，请求参数不完整！')
  if (Date.now() - Number(time) > 300_000) return error('签名验证失败，请求时效性验证失败！')
  return sign === signOf(visit) ? undefined : error('Sign签名校验失败！')
}

/**
 * SignUtil.java:51 and HttpUtils.java:38 and 169: the query is decoded before it is split. The secret
 * stands in application-dev.yml:269.
 */
function signOf({ method, path, query, json }: Visit): string {
  const parameters = new Map<string, string>()
  const last = path.slice(path.lastIndexOf('/') + 1)
  if (last.includes(',')) parameters.set('x-path-variable', decodeURIComponent(last))
  for (const pair of decodeURIComponent(query.toString().replaceAll('+', ' ')).split('&')) {
    const end = pair.indexOf('=')
    if (end !== -1) parameters.set(pair.slice(0, end), pair.slice(end + 1))
  }
  const sent = method === 'GET' ? {} : (json as object | undefined)
  for (const [name, value] of Object.entries(sent ?? {})) parameters.set(name, String(value))
  parameters.delete('_t')
  const sorted = [...parameters].sort(([a], [b]) => (a < b ? -1 : 1))
  const plain = `${JSON.stringify(Object.fromEntries(sorted))}dd05f1c54d63749eda95f9fa6d49v442a`
  return createHash('md5').update(plain).digest('hex').toUpperCase()
}
