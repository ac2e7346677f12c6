/** Consoles of `{ok, code, message, data}`, apps/admin/src; requests by the plug-in of Umi. */
import type { ConsoleSpec, Json } from '../console.ts'

const tokenLifetimeMs = 14 * 86_400_000

export const baseResponse: ConsoleSpec = {
  name: 'base-response',
  places: {
    token: { in: 'cookie', key: 'TOKEN__', as: 'text', expires: (_, now) => now + tokenLifetimeMs }
  },
  knownBy: [], // app.tsx:25-35 and :67-73
  ownCode: ({ token, setToken }) => ({ userStore: { getToken: token, setToken } }),
  isOk: body => Boolean(body?.ok) || (body?.ok !== false && body?.success !== false),
  message: ({ showType, message }) => (showType === 0 ? undefined : message),
  statusMessage: (_, body) => String(body.message || undefined), // requestErrorConfig.ts:72-76
  calls: {
    // pages/login/index.tsx:105-126
    signIn: {
      at: 'POST /api/auth/admin/login',
      body: input => ({ ...input, type: 'account' }),
      isOk: ({ ok }) => Boolean(ok)
    },
    user: { at: 'GET /api/account/profile', isQuiet: true },
    list: {
      at: 'GET /api/users/page',
      query: input => ({ ...input, page: input.current, limit: input.pageSize })
    },
    save: 'POST /api/users',
    // components/RightContent/AvatarDropdown.tsx:27-42: only one that succeeded leads away.
    signOut: 'GET /api/account/logout'
  },
  // utils/auth.ts:10-17: what is no text is not kept.
  keeps: login => (typeof login?.authToken === 'string' ? { token: login.authToken } : {}),
  ifNotEntered: 'leaves',
  user: ({ user }) => ({ name: user.name || user.username, roles: rolesOf(user) }),
  // access.ts:12: the menu is in the console.
  menu: ({ user }) => ({ entries: [], permissions: user.role === 'Admin' ? ['canAdmin'] : [] }),
  paging: { page: 'current', size: 'pageSize' },
  table: ({ items, meta }) => [items, meta.totalCount],
  fieldErrors: body => body.data,
  noticesEndBy: 'reload'
}

function rolesOf({ role, roles }: Json): Json {
  return roles ?? [role]
}
