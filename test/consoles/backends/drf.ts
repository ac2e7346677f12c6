/**
 * Django REST framework with djangorestframework-simplejwt (jazzband@998eb63), the package that its
 * documentation names for JSON Web Tokens. The tokens here are opaque: nobody reads one.
 */
import type { BackendSpec } from '../backend.ts'
import { admin, type Response } from '../server.ts'

/** DRF, exceptions.py:96: an error that is a text stands under `detail`. */
const detail = (status: number, text: string): Response => ({ status, json: { detail: text } })

/** simplejwt, authentication.py:57: the challenge of a 401 */
const unauthorized = (json: object): Response => ({
  status: 401,
  headers: { 'www-authenticate': 'Bearer realm="api"' },
  json
})

const wrongPassword = 'No active account found with the given credentials'
const blank = 'This field may not be blank.'
const required = 'This field is required.'

export const drf: BackendSpec = {
  name: 'drf',
  wrongPassword,
  // simplejwt, serializers.py:46 and 77: both tokens at the top, or 401.
  signIn: {
    at: 'POST /api/token/',
    granted: ({ access, refresh }) => ({ status: 200, json: { refresh, access } }),
    refused: unauthorized({ detail: wrongPassword })
  },
  // DRF, pagination.py:165, `page_size_query_param = 'page_size'`
  list: {
    path: '/api/notices/',
    fields: { id: 'id', title: 'title' },
    query: { search: 'search', page: 'page', size: 'page_size' },
    answer: ({ rows, total, page, last, headers }) => {
      // django/core/paginator.py: the first page may be empty.
      if (!(page >= 1 && page <= last)) return detail(404, 'Invalid page.')
      const next = page < last ? `http://${headers.host}/api/notices/?page=${page + 1}` : null
      return { status: 200, json: { count: total, next, results: rows } }
    }
  },
  save: {
    path: '/api/notices/',
    message: blank,
    field: 'title',
    saved: (id, title) => ({ status: 201, json: { id, title } }),
    // DRF, fields.py:286 and 720, exceptions.py:143: errors of fields are lists of texts by field.
    refused: title => ({ status: 400, json: { title: [title === '' ? blank : required] } })
  },
  open: {
    // simplejwt, serializers.py:104: no new refresh token without `ROTATE_REFRESH_TOKENS`.
    'POST /api/token/refresh/': ({ json, tokens }) => {
      const grant = tokens.renew(String(json?.['refresh']))
      return grant === undefined
        ? unauthorized({ detail: 'Token is invalid', code: 'token_not_valid' })
        : { status: 200, json: { access: grant.access, refresh: grant.refresh } }
    }
  },
  guarded: {
    // DRF has no call for the user; each project writes one, commonly at this path.
    'GET /api/users/me/': () => {
      const { id, username, name, role } = admin
      return { status: 200, json: { id, username, first_name: name, email: '', groups: [role] } }
    }
  },
  unauthorized: ({ token }) =>
    unauthorized(
      token === undefined
        ? { detail: 'Authentication credentials were not provided.' }
        : { detail: 'Given token not valid for any token type', code: 'token_not_valid' }
    )
}
