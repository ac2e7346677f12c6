/**
 * Yudao. Its request layer is config/axios/service.ts. Files are those of src.
 *
 * Built with VITE_BASE_URL empty (.env.prod names a host) and tenants on. VITE_APP_CAPTCHA_ENABLE
 * is `true` where credentials have a captcha, and otherwise `false`: the slider cannot be switched
 * off by a response.
 */
import { type ConsoleSpec, type Json, type Place } from '../console.ts'

/** .env:26 */
const tenantName = '芋道源码'
const captchaType = 'blockPuzzle'

/** locales/zh-CN.ts:336-352, and what a renewal shows that failed */
const timeout = '登录超时,请重新登录!'
const words: Readonly<Record<string, string>> = { 401: timeout, 500: '服务器错误,请联系管理员!' }

/** utils/auth.ts and hooks/web/useCache.ts */
const stored = (key: string): Place => ({ in: 'localStorage', key, as: 'JSON' })

export const yudao: ConsoleSpec = {
  name: 'yudao',
  places: {
    token: stored('ACCESS_TOKEN'),
    refreshToken: stored('REFRESH_TOKEN'),
    tenant: stored('tenantId'),
    user: stored('user')
  },
  ownCode: ({ state, keep }) => ({
    getAccessToken: (): Json => state()['token'],
    setToken: ({ accessToken: token, refreshToken }: Json) => keep({ token, refreshToken })
  }),
  headers: ({ token, tenant }) => ({
    'Authorization': token && `Bearer ${token}`,
    'tenant-id': tenant
  }),
  isOk: ({ code }) => [0, 200].includes(code ?? 200), // config/axios/service.ts:120-222
  message: ({ code, msg }) => words[code] || msg || '系统未知错误，请反馈给管理员',
  // config/axios/service.ts:225-238: the body is not read.
  statusMessage: status => `请求出错，请稍候重试${status}`,
  calls: {
    puzzle: {
      at: 'POST /admin-api/system/captcha/get',
      body: () => ({ captchaType }),
      isOk: ({ repCode }) => repCode === '0000',
      gives: ({ repData }) => repData.token
    },
    slide: {
      at: 'POST /admin-api/system/captcha/check',
      body: (_, { form, puzzle }) => ({ captchaType, pointJson: form.captcha, token: puzzle }),
      isOk: ({ repCode }) => repCode === '0000',
      message: () => '验证失败'
    },
    tenant: {
      at: 'GET /admin-api/system/tenant/get-id-by-name',
      query: () => ({ name: tenantName })
    },
    signIn: {
      at: 'POST /admin-api/system/auth/login',
      body: ({ username, password, captcha }, { puzzle }) => ({
        ...{ tenantName, username, password, rememberMe: true },
        captchaVerification: captcha && `${puzzle}---${captcha}`
      })
    },
    user: 'GET /admin-api/system/auth/get-permission-info',
    dictionary: 'GET /admin-api/system/dict-data/simple-list',
    refresh: {
      at: 'POST /admin-api/system/auth/refresh-token?refreshToken={refreshToken}',
      message: () => timeout,
      statusMessage: () => timeout
    },
    list: 'GET /admin-api/system/notice/page',
    save: 'POST /admin-api/system/notice/create',
    // store/modules/user.ts:86-91: only one that succeeded leads to the sign-in page.
    signOut: 'POST /admin-api/system/auth/logout'
  },
  beforeSignIn: ({ captcha }) => (captcha ? ['puzzle', 'slide', 'tenant'] : ['tenant']),
  keeps: ({ accessToken, refreshToken }) => ({ token: accessToken, refreshToken }),
  beside: ['dictionary'],
  ifNotEntered: 'shows the kept user',
  user: ({ user: { user, roles } }) => ({ name: user.nickname, roles }),
  menu: ({ user: { menus, permissions } }) => ({
    entries: (menus ?? [])
      .filter(({ visible }: Json) => visible)
      .map(({ name }: Json): unknown => name),
    permissions: permissions ?? []
  }),
  paging: { page: 'pageNo', size: 'pageSize' },
  renews: { on: ({ code }) => code === 401 }, // config/axios/service.ts:152-194
  // config/axios/service.ts:245-270: the dialog has one button.
  ends: { on: ({ code }) => code === 401, by: 'leaving', isOffOnStart: true }
}
