/**
 * Django REST framework with djangorestframework-simplejwt, the package that its documentation
 * names for JSON Web Tokens.
 *
 * DRF: encode/django-rest-framework@751a19f, simplejwt: jazzband/djangorestframework-simplejwt@998eb63.
 * The tokens here are opaque: neither the gateway nor a console reads a token.
 */
import {
  bearerIn,
  familyOf,
  items,
  itemsWith,
  pageOf,
  type Request,
  type Response,
  userWith,
  type Visit
} from '../backend.ts'

/** DRF, exceptions.py:96: an error that is a text stands under `detail`. */
const detail = (status: number, text: string): Response => ({ status, json: { detail: text } })

/** simplejwt, authentication.py:57: the challenge of a 401. */
const unauthorized = (json: object): Response => ({
  status: 401,
  headers: { 'www-authenticate': 'Bearer realm="api"' },
  json
})

const required = 'This field is required.'
const blank = 'This field may not be blank.'
// simplejwt, serializers.py:37.
const wrongPassword = 'No active account found with the given credentials'

/**
 * DRF, fields.py:286 and 720: the two refusals of a text field. DRF, exceptions.py:143: errors of
 * fields are lists of texts by field, with status 400.
 */
const withFields =
  (names: readonly string[], handle: (visit: Visit) => Response) =>
  (visit: Visit): Response => {
    const problems = names.flatMap(name => {
      const value = visit.member(name)
      if (value === undefined) return [[name, [required]]]
      return value.trim() === '' ? [[name, [blank]]] : []
    })
    return problems.length === 0
      ? handle(visit)
      : { status: 400, json: Object.fromEntries(problems) as object }
  }

/** DRF, pagination.py:165, `page_size_query_param = 'page_size'`, PAGE_SIZE 10. */
function list({ query, headers, path }: Request): Response {
  const found = itemsWith(query.get('search'))
  const size = positive(query.get('page_size')) ?? 10
  const page = positive(query.get('page') ?? '1')
  // django/core/paginator.py: the first page may be empty.
  const pages = Math.max(1, Math.ceil(found.length / size))
  if (page === undefined || page > pages) return detail(404, 'Invalid page.')
  const linkTo = (target: number) => {
    const parameters = new URLSearchParams(query)
    parameters.set('page', String(target))
    return `http://${headers.host}${path}?${parameters.toString()}`
  }
  return {
    status: 200,
    json: {
      count: found.length,
      next: page < pages ? linkTo(page + 1) : null,
      previous: page > 1 ? linkTo(page - 1) : null,
      results: pageOf(page, size, found)
    }
  }
}

function positive(text: string | null): number | undefined {
  return text !== null && /^[1-9]\d*$/.test(text) ? Number(text) : undefined
}

const invalidToken = {
  token_class: 'AccessToken',
  token_type: 'access',
  message: 'Token is invalid'
}

export const backend = familyOf({
  name: 'drf',
  source: 'encode/django-rest-framework@751a19fe1b237beca9af7d587fce55d3e09d3741',
  list: { path: '/api/notices/', fields: { id: 'id', title: 'title' }, search: 'search' },
  save: { path: '/api/notices/', message: blank, field: 'title', operations: [] },
  wrongPassword,
  tokenIn: bearerIn,
  // simplejwt, authentication.py:117 and exceptions.py:38; DRF, views.py:179 without a token.
  unauthorized: request =>
    bearerIn(request) === undefined
      ? unauthorized({ detail: 'Authentication credentials were not provided.' })
      : unauthorized({
          detail: 'Given token not valid for any token type',
          code: 'token_not_valid',
          messages: [invalidToken]
        }),
  // DRF, request.py:356: a body of another type than the parsers read.
  refuse: ({ method, type }) =>
    method === 'GET' || type.startsWith('application/json')
      ? undefined
      : detail(415, `Unsupported media type "${type}" in request.`),
  open: {
    // simplejwt, serializers.py:46 and 77: both tokens at the top, or 401.
    'POST /api/token/': withFields(['username', 'password'], ({ member, tokens }) => {
      const user = userWith(member('username'), member('password'))
      if (user === undefined) return unauthorized({ detail: wrongPassword })
      const { access, refresh } = tokens.issue(user)
      return { status: 200, json: { refresh, access } }
    }),
    // simplejwt, serializers.py:117, with ROTATE_REFRESH_TOKENS.
    'POST /api/token/refresh/': withFields(['refresh'], ({ member, tokens }) => {
      const grant = tokens.renew(member('refresh') ?? '')
      return grant === undefined
        ? unauthorized({ detail: 'Token is invalid', code: 'token_not_valid' })
        : { status: 200, json: { access: grant.access, refresh: grant.refresh } }
    })
  },
  guarded: {
    // DRF has no call for the user; each project writes one, commonly at this path.
    'GET /api/users/me/': ({ user: { id, username, name, role } }) => ({
      status: 200,
      json: { id, username, first_name: name, email: '', groups: [role] }
    }),
    'GET /api/notices/': list,
    'POST /api/notices/': withFields(['title'], ({ member }) => ({
      status: 201,
      json: { id: items.length + 1, title: member('title') }
    }))
  },
  // DRF, exceptions.py:187 and 194.
  otherwise: ({ method }, knownPath) =>
    knownPath ? detail(405, `Method "${method}" not allowed.`) : detail(404, 'Not found.')
})
