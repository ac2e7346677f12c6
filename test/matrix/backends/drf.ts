/**
 * Django REST framework with djangorestframework-simplejwt, the package that its documentation
 * names for JSON Web Tokens.
 *
 * DRF: encode/django-rest-framework@751a19f, simplejwt: jazzband/djangorestframework-simplejwt@998eb63.
 * The tokens here are opaque: neither the gateway nor a console reads a token.
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
  textOf,
  Tokens,
  userWith
} from '../backend.ts'

/** DRF, exceptions.py:96: an error that is a text stands under `detail`. */
const detail = (status: number, text: string): Response => ({ status, json: { detail: text } })

// simplejwt, authentication.py:57: the challenge of a 401.
const challenge = { 'www-authenticate': 'Bearer realm="api"' }

/** DRF, exceptions.py:143: errors of fields are lists of texts by field, with status 400. */
const invalid = (fields: Record<string, string[]>): Response => ({ status: 400, json: fields })

const required = 'This field is required.'
const blank = 'This field may not be blank.'

/** DRF, fields.py:286 and 720: the two refusals of a text field. */
function problemsOf(json: unknown, names: readonly string[]): Record<string, string[]> | undefined {
  const problems = names.flatMap(name => {
    const value = textOf(json, name)
    if (value === undefined) return [[name, [required]]]
    return value.trim() === '' ? [[name, [blank]]] : []
  })
  return problems.length === 0 ? undefined : Object.fromEntries(problems)
}

/** simplejwt, authentication.py:117 and exceptions.py:38; DRF, views.py:179 without a token. */
const guarded = guard(({ headers }) => {
  if (schemeToken(headers, 'Bearer') === undefined) {
    const refusal = detail(401, 'Authentication credentials were not provided.')
    return { ...refusal, headers: challenge }
  }
  return {
    status: 401,
    headers: challenge,
    json: {
      detail: 'Given token not valid for any token type',
      code: 'token_not_valid',
      messages: [
        {
          token_class: 'AccessToken',
          token_type: 'access',
          message: 'Token is invalid'
        }
      ]
    }
  }
})

/** DRF, request.py:356: a body of another type than the parsers read. */
const parsed =
  (handle: Handler): Handler =>
  (request, caller) => {
    const type = request.headers['content-type'] ?? ''
    if (!type.startsWith('application/json')) {
      return detail(415, `Unsupported media type "${type}" in request.`)
    }
    return handle(request, caller)
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

function start(cleanUp: (undo: () => unknown) => void): Promise<Backend> {
  const tokens = new Tokens()
  return serveFamily(cleanUp, {
    family: backend,
    tokens,
    tokenIn: ({ headers }) => schemeToken(headers, 'Bearer'),
    endpoints: {
      // simplejwt, serializers.py:46 and 77: both tokens at the top, or 401.
      'POST /api/token/': parsed(({ json }) => {
        const problems = problemsOf(json, ['username', 'password'])
        if (problems !== undefined) return invalid(problems)
        const user = userWith(textOf(json, 'username'), textOf(json, 'password'))
        if (user === undefined) {
          return { ...detail(401, backend.wrongPassword), headers: challenge }
        }
        const { access, refresh } = tokens.issue(user)
        return { status: 200, json: { refresh, access } }
      }),
      // simplejwt, serializers.py:117, with ROTATE_REFRESH_TOKENS.
      'POST /api/token/refresh/': parsed(({ json }) => {
        const problems = problemsOf(json, ['refresh'])
        if (problems !== undefined) return invalid(problems)
        const grant = tokens.renew(textOf(json, 'refresh') ?? '')
        if (grant === undefined) {
          return {
            status: 401,
            headers: challenge,
            json: { detail: 'Token is invalid', code: 'token_not_valid' }
          }
        }
        return { status: 200, json: { access: grant.access, refresh: grant.refresh } }
      }),
      // DRF has no call for the user; each project writes one, commonly at this path.
      'GET /api/users/me/': guarded((_, caller) => {
        const { id, username, name, role } = caller.user
        return {
          status: 200,
          json: { id, username, first_name: name, email: '', groups: [role] }
        }
      }),
      'GET /api/notices/': guarded(list),
      'POST /api/notices/': guarded(
        parsed(({ json }) => {
          const problems = problemsOf(json, ['title'])
          if (problems !== undefined) return invalid(problems)
          return { status: 201, json: { id: items.length + 1, title: textOf(json, 'title') } }
        })
      )
    },
    // DRF, exceptions.py:187 and 194.
    otherwise: ({ method }, knownPath) =>
      knownPath ? detail(405, `Method "${method}" not allowed.`) : detail(404, 'Not found.')
  })
}

export const backend: BackendFamily = {
  name: 'drf',
  source: 'encode/django-rest-framework@751a19fe1b237beca9af7d587fce55d3e09d3741',
  list: { path: '/api/notices/', fields: { id: 'id', title: 'title' }, search: 'search' },
  save: {
    method: 'POST',
    path: '/api/notices/',
    message: blank,
    field: 'title',
    body: title => ({ title }),
    operations: []
  },
  loginName: ({ username }) => username,
  // simplejwt, serializers.py:37.
  wrongPassword: 'No active account found with the given credentials',
  refreshes: true,
  start
}
