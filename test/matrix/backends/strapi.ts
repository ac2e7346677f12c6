/**
 * Strapi 5 with its plugin users-permissions: strapi/strapi@c82e67b. True statuses; errors stand in
 * `error`, data in `data`.
 *
 * Files of the comments: packages/plugins/users-permissions/server/controllers/auth.js,
 * packages/core/core/src/services/errors.ts, packages/core/utils/src/{pagination,format-yup-error}.ts.
 */
import {
  bearerIn,
  familyOf,
  items,
  itemsWith,
  pageOf,
  type Request,
  type Response,
  type TestUser,
  textOf,
  userWith,
  type Visit
} from '../backend.ts'

/** errors.ts: formatApplicationError. */
const error = (status: number, name: string, message: string, details: unknown = {}): Response => ({
  status,
  json: { data: null, error: { status, name, message, details } }
})

const wrongPassword = 'Invalid identifier or password'
const emptyTitle = 'title must be at least 1 characters'

/** format-yup-error.ts: the fields stand in `details.errors`, their names as a path. */
function invalid(problems: readonly { path: string[]; message: string }[]): Response {
  const errors = problems.map(problem => ({ ...problem, name: 'ValidationError' }))
  const message =
    errors.length === 1 ? (errors[0]?.message ?? '') : `${errors.length} errors occurred`
  return error(400, 'ValidationError', message, { errors })
}

/** pagination.ts: `pagination[page]`, `pagination[pageSize]`, 25 by default. */
function list({ query }: Request): Response {
  const found = itemsWith(query.get('filters[title][$containsi]'))
  const page = Math.max(Number(query.get('pagination[page]') ?? 1), 1)
  const pageSize = Math.min(Number(query.get('pagination[pageSize]') ?? 25), 100)
  const rows = pageOf(page, pageSize, found)
  const data = rows.map(item => ({ documentId: `document${item.id}`, ...item }))
  const [pageCount, total] = [Math.ceil(found.length / pageSize), found.length]
  const meta = { pagination: { page, pageSize, pageCount, total } }
  return { status: 200, json: { data, meta } }
}

const userOf = ({ id, username, name }: TestUser) => ({
  id,
  documentId: `user${id}`,
  username,
  email: `${username}@example.com`,
  name,
  confirmed: true,
  blocked: false
})

/** auth.js, callback: a wrong password is a ValidationError with status 400. */
function signIn({ member, tokens }: Visit): Response {
  const missing = ['identifier', 'password'].filter(name => member(name) === undefined)
  if (missing.length > 0) {
    return invalid(missing.map(name => ({ path: [name], message: `${name} is a required field` })))
  }
  const user = userWith(member('identifier'), member('password'))
  if (user === undefined) return error(400, 'ValidationError', wrongPassword)
  return { status: 200, json: { jwt: tokens.issue(user).access, user: userOf(user) } }
}

/** The body stands in `data`; an empty required text is a field error. */
function create({ json }: Request): Response {
  const data: unknown = typeof json === 'object' && json !== null && Reflect.get(json, 'data')
  if (typeof data !== 'object' || data === null) {
    return error(400, 'ValidationError', 'Missing "data" payload in the request body')
  }
  const title = textOf(data, 'title')
  if (title === undefined) return invalid([{ path: ['title'], message: 'title must be defined.' }])
  if (title === '') return invalid([{ path: ['title'], message: emptyTitle }])
  const id = items.length + 1
  return { status: 201, json: { data: { documentId: `document${id}`, id, title }, meta: {} } }
}

export const backend = familyOf({
  name: 'strapi',
  source: 'strapi/strapi@c82e67b7e4c16dd38c96968b01023620569102f3',
  list: {
    path: '/api/notices',
    fields: { id: 'id', title: 'title' },
    search: 'filters[title][$containsi]'
  },
  save: {
    path: '/api/notices',
    message: emptyTitle,
    field: 'title',
    operations: [{ move: { title: 'data.title' } }]
  },
  wrongPassword,
  tokenIn: bearerIn,
  // Without a token the role Public decides (403); a token that is not valid is 401.
  unauthorized: ({ headers }) =>
    headers.authorization === undefined
      ? error(403, 'ForbiddenError', 'Forbidden')
      : error(401, 'UnauthorizedError', 'Missing or invalid credentials'),
  open: { 'POST /api/auth/local': signIn },
  guarded: {
    // The role only with populate=role, as an object with `type`.
    'GET /api/users/me': ({ query, user }) => {
      const role = { id: user.id, name: user.role, type: user.role }
      const populated = query.get('populate') === 'role' ? { role } : {}
      return { status: 200, json: { ...userOf(user), ...populated } }
    },
    'GET /api/notices': list,
    'POST /api/notices': create
  },
  otherwise: (_, knownPath) =>
    knownPath
      ? error(405, 'MethodNotAllowedError', 'Method Not Allowed')
      : error(404, 'NotFoundError', 'Not Found')
})
