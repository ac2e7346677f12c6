/** Strapi 5, users-permissions. True statuses; errors stand in `error`, data in `data`. */
import type { BackendSpec } from '../backend.ts'
import { admin, type Response } from '../server.ts'

/** packages/core/core/src/services/errors.ts: formatApplicationError */
const error = (status: number, name: string, message: string, details: unknown = {}): Response => ({
  status,
  json: { data: null, error: { status, name, message, details } }
})

const wrongPassword = 'Invalid identifier or password'
const emptyTitle = 'title must be at least 1 characters'

/** format-yup-error.ts: the fields stand in `details.errors`, their names as a path. */
const invalidTitle = error(400, 'ValidationError', emptyTitle, {
  errors: [{ path: ['title'], message: emptyTitle, name: 'ValidationError' }]
})

const { id, username, name, role: type } = admin
const user = { id, documentId: `user${id}`, username, name, confirmed: true, blocked: false }

export const strapi: BackendSpec = {
  name: 'strapi',
  wrongPassword,
  // users-permissions/server/controllers/auth.js, callback: a wrong password is a ValidationError.
  signIn: {
    at: 'POST /api/auth/local',
    fieldsOf: ({ json }) => ({ username: json?.identifier, password: json?.password }),
    granted: ({ access }) => ({ status: 200, json: { jwt: access, user } }),
    refused: error(400, 'ValidationError', wrongPassword)
  },
  list: {
    path: '/api/notices',
    fields: { id: 'id', title: 'title' },
    query: {
      search: 'filters[title][$containsi]',
      page: 'pagination[page]',
      size: 'pagination[pageSize]'
    },
    defaultSize: 25,
    maxSize: 100,
    answer: ({ rows, total, page, size, last }) => {
      const data = rows.map((row, at) => ({ documentId: `document${at}`, ...row }))
      const pagination = { page, pageSize: size, pageCount: last, total }
      return { status: 200, json: { data, meta: { pagination } } }
    }
  },
  // The body stands in `data`; an empty required text is a field error.
  save: {
    path: '/api/notices',
    message: emptyTitle,
    field: 'title',
    operations: [{ move: { title: 'data.title' } }],
    titleOf: ({ data }) => data?.title,
    saved: (id, title) => ({
      status: 201,
      json: { data: { documentId: `document${id}`, id, title }, meta: {} }
    }),
    refused: title =>
      title === ''
        ? invalidTitle
        : error(400, 'ValidationError', 'Missing "data" payload in the request body')
  },
  guarded: {
    // The role only with populate=role, as an object with `type`.
    'GET /api/users/me': ({ query }) => {
      const populated = query.get('populate') === 'role' ? { role: { id, name: type, type } } : {}
      return { status: 200, json: { ...user, ...populated } }
    }
  },
  // Without a token the role Public decides (403); a token that is not valid is 401.
  unauthorized: ({ headers }) =>
    headers.authorization === undefined
      ? error(403, 'ForbiddenError', 'Forbidden')
      : error(401, 'UnauthorizedError', 'Missing or invalid credentials')
}
