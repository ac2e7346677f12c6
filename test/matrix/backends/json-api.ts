/**
 * JSON:API 1.1 (https://jsonapi.org/format/1.1/, sections in the comments), with the sign-in of
 * RFC 6749 (OAuth 2.0, sections 4.3, 5 and 6), since JSON:API has none of its own.
 */
import {
  bearerIn,
  familyOf,
  type Grant,
  items,
  itemsWith,
  pageOf,
  type Request,
  type Response,
  textOf,
  userWith,
  type Visit
} from '../backend.ts'

const mediaType = 'application/vnd.api+json'

const document = (status: number, json: unknown, more: object = {}): Response => ({
  status,
  json,
  headers: { 'content-type': mediaType, ...more }
})

/** Section "Error Objects": the field is a JSON pointer in `source`. */
const errors = (status: number, title: string, detail: string, pointer?: string) => {
  const source = pointer === undefined ? {} : { source: { pointer } }
  return { errors: [{ status: String(status), title, detail, ...source }] }
}
const error = (...given: Parameters<typeof errors>) => document(given[0], errors(...given))

const wrongPassword = 'The user name or the password is wrong.'
const noTitle = "title can't be blank"

/** Section "Pagination": `page[number]` and `page[size]`. */
function list({ query }: Request): Response {
  const known = ['filter', 'include', 'sort']
  const unknown = [...query.keys()].find(name => /^[a-z]+$/.test(name) && !known.includes(name))
  // Section "Query Parameters": a name of only a-z that the server does not know must be refused.
  if (unknown !== undefined) {
    return error(400, 'Invalid Query Parameter', `"${unknown}" is not a query parameter.`)
  }
  const found = itemsWith(query.get('filter[title]'))
  const number = Number(query.get('page[number]') ?? 1)
  const size = Number(query.get('page[size]') ?? 10)
  const data = pageOf(number, size, found).map(({ id, title }) => ({
    type: 'notices',
    id: String(id),
    attributes: { title }
  }))
  return document(200, { data, meta: { total: found.length } })
}

/** RFC 6749, sections 4.3.2, 6 and 5.2: a form; a refused grant is 400 `invalid_grant`. */
function token({ type, text, tokens }: Visit): Response {
  const refused = (code: string, description: string): Response => ({
    status: 400,
    json: { error: code, error_description: description }
  })
  const answer = (grant: Grant | undefined, description: string): Response =>
    grant === undefined ? refused('invalid_grant', description) : granted(grant)
  if (!type.startsWith('application/x-www-form-urlencoded')) {
    return refused('invalid_request', 'The body must be a form.')
  }
  const form = new URLSearchParams(text)
  if (form.get('grant_type') === 'password') {
    const user = userWith(form.get('username') ?? '', form.get('password') ?? '')
    return answer(user && tokens.issue(user), wrongPassword)
  }
  if (form.get('grant_type') === 'refresh_token') {
    const grant = tokens.renew(form.get('refresh_token') ?? '')
    return answer(grant, 'The refresh token is invalid.')
  }
  return refused('unsupported_grant_type', 'The grant type is not supported.')
}

/** RFC 6749, section 5.1. */
const granted = ({ access, refresh }: Grant): Response => ({
  status: 200,
  json: { access_token: access, token_type: 'Bearer', expires_in: 900, refresh_token: refresh }
})

/** Section "Creating Resources": 201 with the resource; validation is commonly 422. */
function create({ json }: Request): Response {
  const data: unknown = typeof json === 'object' && json !== null && Reflect.get(json, 'data')
  if (typeof data !== 'object' || data === null || textOf(data, 'type') !== 'notices') {
    return error(409, 'Conflict', 'The type of the resource must be "notices".', '/data/type')
  }
  const title = textOf(Reflect.get(data, 'attributes'), 'title') ?? ''
  if (title === '') return error(422, 'Invalid Attribute', noTitle, '/data/attributes/title')
  const id = String(items.length + 1)
  return document(201, { data: { type: 'notices', id, attributes: { title } } })
}

export const backend = familyOf({
  name: 'json-api',
  source: 'https://jsonapi.org/format/1.1/',
  list: {
    path: '/notices',
    fields: { id: 'id', title: 'attributes.title' },
    search: 'filter[title]'
  },
  save: {
    path: '/notices',
    message: noTitle,
    field: 'title',
    operations: [
      { move: { title: 'data.attributes.title' } },
      { at: { path: 'data', operations: [{ constant: { type: 'notices' } }] } }
    ]
  },
  wrongPassword,
  tokenIn: bearerIn,
  unauthorized: () =>
    document(401, errors(401, 'Unauthorized', 'The access token is missing or has expired.'), {
      'www-authenticate': 'Bearer'
    }),
  // Section "Content Negotiation": bodies have the media type of JSON:API, without parameters.
  refuse: ({ endpoint, method, type }) =>
    method === 'GET' || endpoint === '/oauth/token' || type === mediaType
      ? undefined
      : error(415, 'Unsupported Media Type', `The body must be ${mediaType}.`),
  open: { 'POST /oauth/token': token },
  guarded: {
    'GET /users/me': ({ user: { id, username, name, role } }) =>
      document(200, {
        data: { type: 'users', id: String(id), attributes: { username, name, roles: [role] } }
      }),
    'GET /notices': list,
    'POST /notices': create
  },
  otherwise: ({ method }, knownPath) =>
    knownPath
      ? error(405, 'Method Not Allowed', `${method} is not allowed here.`)
      : error(404, 'Not Found', 'There is no such resource.')
})
