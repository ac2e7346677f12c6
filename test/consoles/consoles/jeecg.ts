/** JeecgBoot, jeecgboot-vue3/src. Its request layer is utils/http/axios. */
import { createCipheriv, createHash } from 'node:crypto'
import { type ConsoleSpec, type Json, type Place, titlesOf } from '../console.ts'

/** locales/lang/zh-CN/sys.ts:6-25 */
const timeout = '登录超时,请重新登录!'
const status401 = '用户没有权限（令牌、用户名、密码错误）!'

/** utils/cache/persistent.ts: one entry of localStorage for all names. */
const cached = (member: string): Place => ({
  in: 'localStorage',
  key: 'COMMON__LOCAL__KEY__',
  member,
  as: 'JSON'
})

export const jeecg: ConsoleSpec = {
  name: 'jeecg',
  places: {
    token: cached('TOKEN__'),
    user: cached('USER__INFO__'),
    tenant: cached('TENANT_ID')
  },
  ownCode: ({ token, setToken, call }) => ({
    userStore: { getToken: token, setToken, getUserInfoAction: () => call('user') }
  }),
  headers: ({ token, tenant, now }, path, sent) => ({
    'X-TIMESTAMP': now,
    'X-Sign': sign(path, sent),
    'X-Version': 'v3',
    'Authorization': token,
    'X-Access-Token': token,
    'X-Tenant-Id': token && String(tenant ?? 0)
  }),
  hasTimes: true,
  isOk: ({ code }) => code === 0 || code === 200, // utils/http/axios/index.ts:33-88
  gives: body => body.result,
  okMessage: ({ success, message }) => success && message,
  message: ({ code, message }) => (code === 401 ? timeout : message),
  statusMessage: (status, { message }) =>
    status === 401 ? message || status401 : message || `(words for status ${status})`,
  calls: {
    picture: 'GET /jeecgboot/sys/randomImage/{now}',
    signIn: {
      at: 'POST /jeecgboot/sys/login',
      body: ({ username, password, captcha = '' }, { now }) => ({
        username,
        password: encrypt(password),
        captcha,
        checkKey: String(now)
      })
    },
    user: { at: 'GET /jeecgboot/sys/user/getUserInfo', gives: body => body.result.userInfo },
    permission: 'GET /jeecgboot/sys/permission/getUserPermissionByToken',
    list: {
      at: 'GET /jeecgboot/sys/annountCement/list',
      query: input => ({ ...input, column: 'createTime', order: 'desc' })
    },
    save: 'POST /jeecgboot/sys/annountCement/add',
    signOut: 'GET /jeecgboot/sys/logout'
  },
  leavesAnyway: true,
  beforeSignIn: () => ['picture'], // views/system/loginmini/MiniLogin.vue:356-364 and :385-432
  keeps: ({ token, userInfo }) => ({ token, tenant: userInfo.loginTenantId }),
  afterSignIn: ['user', 'permission'],
  onStart: ['permission'],
  user: ({ user, permission }) => {
    titlesOf(permission.menu)
    return { name: user?.realname, roles: (user?.roles ?? []).map(({ value }: Json) => value) }
  },
  menu: ({ permission: { menu, codeList } }) => ({
    entries: titlesOf(menu),
    permissions: codeList ?? []
  }),
  paging: { page: 'pageNo', size: 'pageSize' },
  table: ({ records, total }) => [records, total],
  ends: { on: ({ code }) => code === 401, status: 401, by: 'leaving' }
}

/** utils/cipher.ts:64-80: AES with a fixed key, so that no password goes in the clear. */
function encrypt(password: string): string {
  const cipher = createCipheriv('aes-128-cbc', '1234567890adbcde', '1234567890hjlkew')
  return cipher.update(password, 'utf8', 'base64') + cipher.final('base64')
}

/**
 * utils/encryption/signMd5Utils.js:32-43 and :58-65: over all parameters in order, numbers as text,
 * and over a last segment of the path that has commas.
 */
export function sign(path: string, parameters: object): string {
  const last = path.slice(path.lastIndexOf('/') + 1)
  const more = last.includes(',') ? { 'x-path-variable': decodeURIComponent(last) } : {}
  const sorted = Object.entries({ ...parameters, ...more })
    .filter(([name, value]) => name !== '_t' && value !== undefined)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => [name, typeof value === 'number' ? String(value) : (value as unknown)])
  const secret = 'dd05f1c54d63749eda95f9fa6d49v442a'
  const plain = JSON.stringify(Object.fromEntries(sorted)) + secret
  return createHash('md5').update(plain).digest('hex').toUpperCase()
}
