/**
 * Directus: directus/directus@763259f. True statuses; errors are a list in `errors`, each with a
 * code in its `extensions`.
 *
 * Files of the comments: api/src/controllers/auth.ts, api/src/auth/drivers/local.ts,
 * packages/errors/src/errors/*.ts, packages/validation/src/errors/failed-validation.ts.
 */
import {
  type Backend,
  type BackendFamily,
  guard,
  type Handler,
  items,
  itemsWith,
  type Request,
  type Response,
  schemeToken,
  serveFamily,
  textOf,
  Tokens,
  users,
  userWith
} from '../backend.ts'

const error = (
  status: number,
  code: string,
  message: string,
  extensions: object = {}
): Response => ({
  status,
  json: { errors: [{ message, extensions: { ...extensions, code } }] }
})

/** Without a token the public policy decides (403); one that has expired is 401. */
const guarded = guard(({ headers }) =>
  schemeToken(headers, 'Bearer') === undefined
    ? error(403, 'FORBIDDEN', "You don't have permission to access this.")
    : error(401, 'TOKEN_EXPIRED', 'Token expired.')
)

const parsed =
  (handle: Handler): Handler =>
  (request, caller) =>
    request.json === undefined
      ? error(400, 'INVALID_PAYLOAD', 'Invalid payload. Body has to be JSON.')
      : handle(request, caller)

/** `limit`, `page` from 1; the count only with `meta`. */
function list({ query }: Request): Response {
  const found = itemsWith(query.get('search'))
  const limit = Number(query.get('limit') ?? 100)
  const offset = query.has('offset')
    ? Number(query.get('offset'))
    : (Math.max(Number(query.get('page') ?? 1), 1) - 1) * limit
  const data = limit === -1 ? found : found.slice(offset, offset + limit)
  const wanted = (query.get('meta') ?? '').split(',')
  const meta = {
    ...((wanted.includes('filter_count') || wanted.includes('*')) && {
      filter_count: found.length
    }),
    ...((wanted.includes('total_count') || wanted.includes('*')) && { total_count: found.length })
  }
  return { status: 200, json: { data, ...(Object.keys(meta).length > 0 && { meta }) } }
}

const failedValidation = (field: string, type: 'required' | 'nempty') => {
  const reason = type === 'required' ? 'Value is required.' : "Value can't be empty."
  return error(400, 'FAILED_VALIDATION', `Validation failed for field "${field}". ${reason}`, {
    field,
    type
  })
}

/** auth.ts: `expires` are milliseconds from now; 15 minutes by default. */
const grant = ({ access, refresh }: { access: string; refresh: string }): Response => ({
  status: 200,
  json: { data: { expires: 900_000, refresh_token: refresh, access_token: access } }
})

/** A user signs in with an e-mail address (local.ts). */
const emailOf = (username: string) => `${username}@example.com`

const endpointsOf = (tokens: Tokens): Record<string, Handler> => ({
  'POST /auth/login': parsed(({ json }) => {
    const email = textOf(json, 'email')
    if (email === undefined || !/^[^@\s]+@[^@\s]+$/.test(email)) {
      return error(400, 'INVALID_PAYLOAD', 'Invalid payload. "email" must be a valid email.')
    }
    const unknown = Object.keys(json as object).find(
      name => !['email', 'password', 'mode', 'otp'].includes(name)
    )
    if (unknown !== undefined) {
      return error(400, 'INVALID_PAYLOAD', `Invalid payload. "${unknown}" is not allowed.`)
    }
    const named = Object.values(users).find(({ username }) => emailOf(username) === email)
    const user = userWith(named?.username, textOf(json, 'password'))
    if (user === undefined) return error(401, 'INVALID_CREDENTIALS', 'Invalid user credentials.')
    return grant(tokens.issue(user))
  }),
  'POST /auth/refresh': parsed(({ json }) => {
    const token = textOf(json, 'refresh_token')
    if (token === undefined) {
      return error(400, 'INVALID_PAYLOAD', 'Invalid payload. The refresh token is required.')
    }
    const renewed = tokens.renew(token)
    if (renewed === undefined) {
      return error(401, 'INVALID_CREDENTIALS', 'Invalid user credentials.')
    }
    return grant(renewed)
  }),
  // auth.ts: by the refresh token in the body, 204.
  'POST /auth/logout': parsed(({ json }) => {
    const token = textOf(json, 'refresh_token')
    if (token === undefined) {
      return error(400, 'INVALID_PAYLOAD', 'Invalid payload. The refresh token is required.')
    }
    const renewed = tokens.renew(token)
    if (renewed !== undefined) tokens.end(renewed.access)
    return { status: 204 }
  }),
  'GET /users/me': guarded(({ query }, { user }) => ({
    status: 200,
    json: {
      data: {
        id: `user-${user.id}`,
        first_name: user.name,
        last_name: null,
        email: emailOf(user.username),
        // An id, unless a field below it is asked for.
        role: (query.get('fields') ?? '').includes('role.')
          ? { name: user.role }
          : `role-${user.role}`
      }
    }
  })),
  'GET /items/notices': guarded(list),
  'POST /items/notices': guarded(({ json }): Response => {
    const title = textOf(json, 'title')
    if (title === undefined) return failedValidation('title', 'required')
    if (title === '') return failedValidation('title', 'nempty')
    return { status: 200, json: { data: { id: items.length + 1, title } } }
  })
})

export const backend: BackendFamily = {
  name: 'directus',
  source: 'directus/directus@763259f5981d84443b497e677e01d7e6d543aaf8',
  list: { path: '/items/notices', fields: { id: 'id', title: 'title' }, search: 'search' },
  save: {
    method: 'POST',
    path: '/items/notices',
    message: 'Validation failed for field "title". Value can\'t be empty.',
    field: 'title',
    body: title => ({ title }),
    operations: []
  },
  loginName: ({ username }) => emailOf(username),
  wrongPassword: 'Invalid user credentials.',
  refreshes: true,
  start: (cleanUp): Promise<Backend> => {
    const tokens = new Tokens()
    return serveFamily(cleanUp, {
      family: backend,
      tokens,
      tokenIn: ({ headers }) => schemeToken(headers, 'Bearer'),
      endpoints: endpointsOf(tokens),
      otherwise: ({ path }) => error(404, 'ROUTE_NOT_FOUND', `Route ${path} doesn't exist.`)
    })
  }
}
