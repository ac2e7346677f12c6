/**
 * Strapi 5 with its plugin users-permissions: strapi/strapi@c82e67b. True statuses; errors stand in
 * `error`, data in `data`.
 *
 * Files of the comments: packages/plugins/users-permissions/server/controllers/auth.js,
 * packages/core/core/src/services/errors.ts, packages/core/utils/src/{pagination,format-yup-error}.ts.
 */
import {
  type Backend,
  type BackendFamily,
  guard,
  type Handler,
  items,
  itemsWith,
  pageOf,
  type Request,
  type Response,
  schemeToken,
  serveFamily,
  type TestUser,
  textOf,
  Tokens,
  userWith
} from '../backend.ts'

/** errors.ts: formatApplicationError. */
const error = (status: number, name: string, message: string, details: unknown = {}): Response => ({
  status,
  json: {
    data: null,
    error: {
      status,
      name,
      message,
      details
    }
  }
})

/** Without a token the role Public decides (403); a token that is not valid is 401. */
const guarded = guard(({ headers }) =>
  headers.authorization === undefined
    ? error(403, 'ForbiddenError', 'Forbidden')
    : error(401, 'UnauthorizedError', 'Missing or invalid credentials')
)

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
  const data = pageOf(page, pageSize, found).map(item => ({
    documentId: `document${item.id}`,
    ...item
  }))
  return {
    status: 200,
    json: {
      data,
      meta: {
        pagination: {
          page,
          pageSize,
          pageCount: Math.ceil(found.length / pageSize),
          total: found.length
        }
      }
    }
  }
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

const endpointsOf = (tokens: Tokens): Record<string, Handler> => ({
  // auth.js, callback: a wrong password is a ValidationError with status 400.
  'POST /api/auth/local': ({ json }) => {
    const [identifier, password] = [textOf(json, 'identifier'), textOf(json, 'password')]
    const missing = [
      ...(identifier === undefined ? ['identifier'] : []),
      ...(password === undefined ? ['password'] : [])
    ]
    if (missing.length > 0) {
      return invalid(
        missing.map(name => ({ path: [name], message: `${name} is a required field` }))
      )
    }
    const user = userWith(identifier, password)
    if (user === undefined) return error(400, 'ValidationError', 'Invalid identifier or password')
    return { status: 200, json: { jwt: tokens.issue(user).access, user: userOf(user) } }
  },
  // The role only with populate=role, as an object with `type`.
  'GET /api/users/me': guarded(({ query }, { user }) => {
    const role = { id: user.id, name: user.role, type: user.role }
    return {
      status: 200,
      json: { ...userOf(user), ...(query.get('populate') === 'role' && { role }) }
    }
  }),
  'GET /api/notices': guarded(list),
  // The body stands in `data`; an empty required text is a field error.
  'POST /api/notices': guarded(({ json }) => {
    const data: unknown = typeof json === 'object' && json !== null && Reflect.get(json, 'data')
    if (typeof data !== 'object' || data === null) {
      return error(400, 'ValidationError', 'Missing "data" payload in the request body')
    }
    const title = textOf(data, 'title')
    if (title === undefined) {
      return invalid([{ path: ['title'], message: 'title must be defined.' }])
    }
    if (title === '') {
      return invalid([{ path: ['title'], message: 'title must be at least 1 characters' }])
    }
    const id = items.length + 1
    return { status: 201, json: { data: { documentId: `document${id}`, id, title }, meta: {} } }
  })
})

export const backend: BackendFamily = {
  name: 'strapi',
  source: 'strapi/strapi@c82e67b7e4c16dd38c96968b01023620569102f3',
  list: {
    path: '/api/notices',
    fields: { id: 'id', title: 'title' },
    search: 'filters[title][$containsi]'
  },
  save: {
    method: 'POST',
    path: '/api/notices',
    message: 'title must be at least 1 characters',
    field: 'title',
    body: title => ({ data: { title } }),
    operations: [{ move: { title: 'data.title' } }]
  },
  loginName: ({ username }) => username,
  wrongPassword: 'Invalid identifier or password',
  refreshes: false,
  start: (cleanUp): Promise<Backend> => {
    const tokens = new Tokens()
    return serveFamily(cleanUp, {
      family: backend,
      tokens,
      tokenIn: ({ headers }) => schemeToken(headers, 'Bearer'),
      endpoints: endpointsOf(tokens),
      otherwise: (_, knownPath) =>
        knownPath
          ? error(405, 'MethodNotAllowedError', 'Method Not Allowed')
          : error(404, 'NotFoundError', 'Not Found')
    })
  }
}
