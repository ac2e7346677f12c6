/**
 * Directus: directus/directus@763259f. True statuses; errors are a list in `errors`, each with a
 * code in its `extensions`.
 *
 * Files of the comments: api/src/controllers/auth.ts, api/src/auth/drivers/local.ts,
 * packages/errors/src/errors/*.ts, packages/validation/src/errors/failed-validation.ts.
 */
import {
  bearerIn,
  familyOf,
  type Grant,
  items,
  itemsWith,
  type Request,
  type Response,
  users,
  userWith,
  type Visit
} from '../backend.ts'

const error = (status: number, code: string, message: string, more: object = {}): Response => ({
  status,
  json: { errors: [{ message, extensions: { ...more, code } }] }
})
const invalid = (reason: string) => error(400, 'INVALID_PAYLOAD', `Invalid payload. ${reason}`)

const wrongPassword = 'Invalid user credentials.'
const emptyTitle = 'Validation failed for field "title". Value can\'t be empty.'

/** `limit`, `page` from 1; the count only with `meta`. */
function list({ query }: Request): Response {
  const found = itemsWith(query.get('search'))
  const limit = Number(query.get('limit') ?? 100)
  const offset = query.has('offset')
    ? Number(query.get('offset'))
    : (Math.max(Number(query.get('page') ?? 1), 1) - 1) * limit
  const data = limit === -1 ? found : found.slice(offset, offset + limit)
  const wanted = (query.get('meta') ?? '').split(',')
  const counts = ['filter_count', 'total_count'].filter(
    name => wanted.includes(name) || wanted.includes('*')
  )
  const meta = Object.fromEntries(counts.map(name => [name, found.length]))
  return { status: 200, json: { data, ...(counts.length > 0 && { meta }) } }
}

/** auth.ts: `expires` are milliseconds from now; 15 minutes by default. */
const granted = ({ access, refresh }: Grant): Response => ({
  status: 200,
  json: { data: { expires: 900_000, refresh_token: refresh, access_token: access } }
})

/** A user signs in with an e-mail address (local.ts). */
const emailOf = (username: string) => `${username}@example.com`

function signIn({ member, json, tokens }: Visit): Response {
  const email = member('email')
  if (email === undefined || !/^[^@\s]+@[^@\s]+$/.test(email)) {
    return invalid('"email" must be a valid email.')
  }
  const known = ['email', 'password', 'mode', 'otp']
  const unknown = Object.keys(json as object).find(name => !known.includes(name))
  if (unknown !== undefined) return invalid(`"${unknown}" is not allowed.`)
  const named = Object.values(users).find(({ username }) => emailOf(username) === email)
  const user = userWith(named?.username, member('password'))
  if (user === undefined) return error(401, 'INVALID_CREDENTIALS', wrongPassword)
  return granted(tokens.issue(user))
}

function create({ member }: Visit): Response {
  const title = member('title')
  if (title) return { status: 200, json: { data: { id: items.length + 1, title } } }
  return title === undefined
    ? error(400, 'FAILED_VALIDATION', 'Validation failed for field "title". Value is required.', {
        field: 'title',
        type: 'required'
      })
    : error(400, 'FAILED_VALIDATION', emptyTitle, { field: 'title', type: 'nempty' })
}

/** The refresh token in the body. */
const withRefresh =
  (handle: (token: string, visit: Visit) => Response) =>
  (visit: Visit): Response => {
    const token = visit.member('refresh_token')
    return token === undefined ? invalid('The refresh token is required.') : handle(token, visit)
  }

export const backend = familyOf({
  name: 'directus',
  source: 'directus/directus@763259f5981d84443b497e677e01d7e6d543aaf8',
  list: { path: '/items/notices', fields: { id: 'id', title: 'title' }, search: 'search' },
  save: { path: '/items/notices', message: emptyTitle, field: 'title', operations: [] },
  loginName: ({ username }) => emailOf(username),
  wrongPassword,
  tokenIn: bearerIn,
  // Without a token the public policy decides (403); one that has expired is 401.
  unauthorized: request =>
    bearerIn(request) === undefined
      ? error(403, 'FORBIDDEN', "You don't have permission to access this.")
      : error(401, 'TOKEN_EXPIRED', 'Token expired.'),
  refuse: ({ method, json }) =>
    method === 'POST' && json === undefined ? invalid('Body has to be JSON.') : undefined,
  open: {
    'POST /auth/login': signIn,
    'POST /auth/refresh': withRefresh((token, { tokens }) => {
      const renewed = tokens.renew(token)
      return renewed === undefined
        ? error(401, 'INVALID_CREDENTIALS', wrongPassword)
        : granted(renewed)
    }),
    // auth.ts: by the refresh token in the body, 204.
    'POST /auth/logout': withRefresh((token, { tokens }) => {
      tokens.end(tokens.renew(token)?.access ?? '')
      return { status: 204 }
    })
  },
  guarded: {
    'GET /users/me': ({ query, user: { id, name, username, role } }) => {
      // An id, unless a field below it is asked for.
      const isAsked = (query.get('fields') ?? '').includes('role.')
      const data = {
        id: `user-${id}`,
        first_name: name,
        last_name: null,
        email: emailOf(username),
        role: isAsked ? { name: role } : `role-${role}`
      }
      return { status: 200, json: { data } }
    },
    'GET /items/notices': list,
    'POST /items/notices': create
  },
  otherwise: ({ path }) => error(404, 'ROUTE_NOT_FOUND', `Route ${path} doesn't exist.`)
})
