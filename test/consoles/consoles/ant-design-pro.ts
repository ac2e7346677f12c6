/**
 * Ant Design Pro 6. Requests go through the plug-in of Umi (`@umijs/plugins` 4.7.27,
 * dist/request.js). `baseURL` of app.tsx:193 must be emptied, or they go to the demo's host.
 */
import type { ConsoleSpec } from '../console.ts'

export const antDesignPro: ConsoleSpec = {
  name: 'ant-design-pro',
  // app.tsx:39-52 and :113-121; no cookie that scripts see says whether there is a session.
  places: {},
  knownBy: [],
  isOk: body => body?.success !== false, // requestErrorConfig.ts:32-41 and :58-68
  message: ({ showType, errorMessage }) => ([0, 9].includes(showType) ? undefined : errorMessage),
  // requestErrorConfig.ts:73-76: the body is not read.
  statusMessage: status => `Response status:${status}`,
  calls: {
    // pages/user/login/index.tsx:150-175 and :243-250; locales/zh-CN/pages.ts:5
    signIn: {
      at: 'POST /api/login/account',
      body: input => ({ ...input, autoLogin: true, type: 'account' }),
      isOk: body => body.success !== false && body.status === 'ok',
      message: ({ status, type, errorMessage }) =>
        status === 'error' && type === 'account'
          ? '错误的用户名和密码(admin/ant.design)'
          : errorMessage
    },
    user: { at: 'GET /api/currentUser', isQuiet: true },
    // services/ant-design-pro/api.ts:44-62 and :75-84; ProTable reads `data` and `total`.
    list: { at: 'GET /api/rule', gives: body => body },
    save: { at: 'POST /api/rule', body: values => ({ method: 'post', ...values }) },
    // components/RightContent/AvatarDropdown.tsx:38-56
    signOut: 'POST /api/login/outLogin'
  },
  leavesAnyway: true,
  keeps: () => ({}),
  ifNotEntered: 'leaves',
  user: ({ user }) => ({ name: user.name, roles: [user.access] }),
  // access.ts:4-11: the menu is in the console.
  menu: ({ user }) => ({ entries: [], permissions: user.access === 'admin' ? ['canAdmin'] : [] }),
  paging: { page: 'current', size: 'pageSize' },
  table: ({ data, total }) => [data ?? [], total ?? 0],
  fieldErrors: body => body.data,
  ends: { on: ({ showType }) => showType === 9, by: 'leaving' }
}
