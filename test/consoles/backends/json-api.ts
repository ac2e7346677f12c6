/**
 * JSON:API 1.1 (sections in the comments), with the sign-in of RFC 6749 (OAuth 2.0, sections 4.3, 5
 * and 6), since JSON:API has none of its own.
 */
import type { BackendSpec } from '../backend.ts'
import type { Json } from '../console.ts'
import { admin, type Grant, type Response, type Visit } from '../server.ts'

const mediaType = 'application/vnd.api+json'

const document = (status: number, json: unknown, more: object = {}): Response => ({
  status,
  json,
  headers: { 'content-type': mediaType, ...more }
})

/** Section "Error Objects": the field is a JSON pointer in `source`. */
function error(status: number, title: string, detail: string, pointer?: string): Response {
  const source = pointer === undefined ? {} : { source: { pointer } }
  const more = status === 401 ? { 'www-authenticate': 'Bearer' } : {}
  return document(status, { errors: [{ status: String(status), title, detail, ...source }] }, more)
}

const wrongPassword = 'The user name or the password is wrong.'
const noTitle = "title can't be blank"

/** RFC 6749, sections 5.1 and 5.2: a refused grant is 400 `invalid_grant`. */
const granted = ({ access, refresh }: Grant): Response => ({
  status: 200,
  json: { access_token: access, token_type: 'Bearer', expires_in: 900, refresh_token: refresh }
})
const refused = (code: string, description: string): Response => ({
  status: 400,
  json: { error: code, error_description: description }
})

const formOf = ({ body }: Visit) => Object.fromEntries(new URLSearchParams(body))

export const jsonApi: BackendSpec = {
  name: 'json-api',
  wrongPassword,
  // RFC 6749, sections 4.3.2 and 6: a form, for the refresh too.
  signIn: {
    at: 'POST /oauth/token',
    fieldsOf: formOf,
    refuses: visit => {
      const { grant_type: type, refresh_token: token } = formOf(visit)
      if (!visit.type.startsWith('application/x-www-form-urlencoded')) {
        return refused('invalid_request', 'The body must be a form.')
      }
      if (type === 'password') return undefined
      if (type !== 'refresh_token') {
        return refused('unsupported_grant_type', 'The grant type is not supported.')
      }
      const grant = visit.tokens.renew(token)
      const isGranted = grant !== undefined
      return isGranted ? granted(grant) : refused('invalid_grant', 'The refresh token is invalid.')
    },
    granted,
    refused: refused('invalid_grant', wrongPassword)
  },
  // Section "Pagination"
  list: {
    path: '/notices',
    fields: { id: 'id', title: 'attributes.title' },
    query: { search: 'filter[title]', page: 'page[number]', size: 'page[size]' },
    answer: ({ rows, total, query }) => {
      const known = ['filter', 'include', 'sort']
      const isUnknown = (name: string) => /^[a-z]+$/.test(name) && !known.includes(name)
      const unknown = [...query.keys()].find(isUnknown)
      // Section "Query Parameters": a name of only a-z that is not known must be refused.
      if (unknown !== undefined) {
        return error(400, 'Invalid Query Parameter', `"${unknown}" is not a query parameter.`)
      }
      const data = rows.map(({ id, 'attributes.title': title }: Json) => ({
        type: 'notices',
        id: String(id),
        attributes: { title }
      }))
      return document(200, { data, meta: { total } })
    }
  },
  // Section "Creating Resources": 201 with the resource; validation is commonly 422.
  save: {
    path: '/notices',
    message: noTitle,
    field: 'title',
    operations: [
      { move: { title: 'data.attributes.title' } },
      { at: { path: 'data', operations: [{ constant: { type: 'notices' } }] } }
    ],
    titleOf: ({ data }) => (data?.type === 'notices' ? (data.attributes?.title ?? '') : undefined),
    saved: (id, title) =>
      document(201, { data: { type: 'notices', id: String(id), attributes: { title } } }),
    refused: title =>
      title === undefined
        ? error(409, 'Conflict', 'The type of the resource must be "notices".', '/data/type')
        : error(422, 'Invalid Attribute', noTitle, '/data/attributes/title')
  },
  guarded: {
    'GET /users/me': () => {
      const { id, username, name, role } = admin
      const attributes = { username, name, roles: [role] }
      return document(200, { data: { type: 'users', id: String(id), attributes } })
    }
  },
  unauthorized: () => error(401, 'Unauthorized', 'The access token is missing or has expired.'),
  bodyType: mediaType // Section "Content Negotiation"
}
