/** Directus. True statuses; errors are a list. Files: api/src and packages/errors/src. */
import type { BackendSpec } from '../backend.ts'
import { admin, bearerIn, type Grant, type Response, type Visit } from '../server.ts'

const error = (status: number, code: string, message: string, more: object = {}): Response => ({
  status,
  json: { errors: [{ message, extensions: { ...more, code } }] }
})
const invalid = (reason: string) => error(400, 'INVALID_PAYLOAD', `Invalid payload. ${reason}`)

const wrongPassword = 'Invalid user credentials.'
const emptyTitle = 'Validation failed for field "title". Value can\'t be empty.'
const noTitle = 'Validation failed for field "title". Value is required.'

/** A user signs in with an e-mail address (auth/drivers/local.ts). */
const email = `${admin.username}@example.com`

/** controllers/auth.ts: `expires` are milliseconds from now; 15 minutes by default. */
const granted = ({ access, refresh }: Grant): Response => ({
  status: 200,
  json: { data: { expires: 900_000, refresh_token: refresh, access_token: access } }
})

export const directus: BackendSpec = {
  name: 'directus',
  loginName: email,
  wrongPassword,
  signIn: {
    at: 'POST /auth/login',
    fieldsOf: ({ json }) => ({ username: json?.email, password: json?.password }),
    refuses: ({ json }) => {
      const known = ['email', 'password', 'mode', 'otp']
      const unknown = Object.keys(json ?? {}).find(name => !known.includes(name))
      return unknown === undefined ? undefined : invalid(`"${unknown}" is not allowed.`)
    },
    granted,
    refused: error(401, 'INVALID_CREDENTIALS', wrongPassword)
  },
  // The count only with `meta`.
  list: {
    path: '/items/notices',
    fields: { id: 'id', title: 'title' },
    query: { search: 'search', page: 'page', size: 'limit' },
    defaultSize: 100,
    answer: ({ rows: data, total, query }) => {
      const wanted = (query.get('meta') ?? '').split(',')
      const counts = ['filter_count', 'total_count'].filter(
        name => wanted.includes(name) || wanted.includes('*')
      )
      const meta = Object.fromEntries(counts.map(name => [name, total]))
      return { status: 200, json: { data, ...(counts.length > 0 && { meta }) } }
    }
  },
  save: {
    path: '/items/notices',
    message: emptyTitle,
    field: 'title',
    saved: (id, title) => ({ status: 200, json: { data: { id, title } } }),
    refused: title => {
      const [message, type] = title === '' ? [emptyTitle, 'nempty'] : [noTitle, 'required']
      return error(400, 'FAILED_VALIDATION', message, { field: 'title', type })
    }
  },
  open: {
    'POST /auth/refresh': withRefresh((token, { tokens }) => {
      const grant = tokens.renew(token)
      return grant === undefined ? error(401, 'INVALID_CREDENTIALS', wrongPassword) : granted(grant)
    }),
    // controllers/auth.ts: by the refresh token in the body, 204.
    'POST /auth/logout': withRefresh((token, { tokens }) => {
      tokens.end(tokens.renew(token)?.access ?? '')
      return { status: 204 }
    })
  },
  guarded: {
    'GET /users/me': ({ query }) => {
      // An id, unless a field below it is asked for.
      const isAsked = (query.get('fields') ?? '').includes('role.')
      const data = {
        id: `user-${admin.id}`,
        first_name: admin.name,
        last_name: null,
        email,
        role: isAsked ? { name: admin.role } : `role-${admin.role}`
      }
      return { status: 200, json: { data } }
    }
  },
  // Without a token the public policy decides (403); one that has expired is 401.
  unauthorized: request =>
    bearerIn(request) === undefined
      ? error(403, 'FORBIDDEN', "You don't have permission to access this.")
      : error(401, 'TOKEN_EXPIRED', 'Token expired.')
}

/** The refresh token in the body. */
function withRefresh(handle: (token: string, visit: Visit) => Response) {
  return (visit: Visit): Response => {
    const token: unknown = visit.json?.refresh_token
    return typeof token === 'string'
      ? handle(token, visit)
      : invalid('The refresh token is required.')
  }
}
