/**
 * JSON:API 1.1 (https://jsonapi.org/format/1.1/, sections in the comments), with the sign-in of
 * RFC 6749 (OAuth 2.0, sections 4.3, 5 and 6), since JSON:API has none of its own.
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

const mediaType = 'application/vnd.api+json'

const document = (status: number, json: unknown): Response => ({
  status,
  json,
  headers: { 'content-type': mediaType }
})

/** Section "Error Objects": the field is a JSON pointer in `source`. */
const error = (status: number, title: string, detail: string, pointer?: string): Response =>
  document(status, {
    errors: [
      {
        status: String(status),
        title,
        detail,
        ...(pointer !== undefined && { source: { pointer } })
      }
    ]
  })

const guarded = guard(() => ({
  ...error(401, 'Unauthorized', 'The access token is missing or has expired.'),
  headers: { 'content-type': mediaType, 'www-authenticate': 'Bearer' }
}))

/** Section "Content Negotiation": bodies have the media type of JSON:API, without parameters. */
const parsed =
  (handle: Handler): Handler =>
  (request, caller) =>
    request.headers['content-type'] === mediaType
      ? handle(request, caller)
      : error(415, 'Unsupported Media Type', `The body must be ${mediaType}.`)

/** Section "Pagination": `page[number]` and `page[size]`. */
function list({ query }: Request): Response {
  const found = itemsWith(query.get('filter[title]'))
  const number = Number(query.get('page[number]') ?? 1)
  const size = Number(query.get('page[size]') ?? 10)
  const unknown = [...query.keys()].find(name => /^[a-z]+$/.test(name) && !known.includes(name))
  // Section "Query Parameters": a name of only a-z that the server does not know must be refused.
  if (unknown !== undefined) {
    return error(400, 'Invalid Query Parameter', `"${unknown}" is not a query parameter.`)
  }
  const data = pageOf(number, size, found).map(({ id, title }) => ({
    type: 'notices',
    id: String(id),
    attributes: { title }
  }))
  return document(200, { data, meta: { total: found.length } })
}
const known = ['filter', 'include', 'sort']

/** RFC 6749, section 5.1. */
const grant = ({ access, refresh }: { access: string; refresh: string }): Response => ({
  status: 200,
  json: {
    access_token: access,
    token_type: 'Bearer',
    expires_in: 900,
    refresh_token: refresh
  }
})

/** RFC 6749, sections 4.3.2, 6 and 5.2: a form; a refused grant is 400 `invalid_grant`. */
const token =
  (tokens: Tokens): Handler =>
  ({ headers, text }) => {
    const refused = (code: string, description: string) => ({
      status: 400,
      json: { error: code, error_description: description }
    })
    if (!(headers['content-type'] ?? '').startsWith('application/x-www-form-urlencoded')) {
      return refused('invalid_request', 'The body must be a form.')
    }
    const form = new URLSearchParams(text)
    if (form.get('grant_type') === 'password') {
      const user = userWith(form.get('username') ?? '', form.get('password') ?? '')
      return user === undefined
        ? refused('invalid_grant', backend.wrongPassword)
        : grant(tokens.issue(user))
    }
    if (form.get('grant_type') === 'refresh_token') {
      const renewed = tokens.renew(form.get('refresh_token') ?? '')
      return renewed === undefined
        ? refused('invalid_grant', 'The refresh token is invalid.')
        : grant(renewed)
    }
    return refused('unsupported_grant_type', 'The grant type is not supported.')
  }

const endpointsOf = (tokens: Tokens): Record<string, Handler> => ({
  'POST /oauth/token': token(tokens),
  'GET /users/me': guarded((_, { user }) =>
    document(200, {
      data: {
        type: 'users',
        id: String(user.id),
        attributes: { username: user.username, name: user.name, roles: [user.role] }
      }
    })
  ),
  'GET /notices': guarded(list),
  // Section "Creating Resources": 201 with the resource; validation is commonly 422.
  'POST /notices': guarded(
    parsed(({ json }) => {
      const data: unknown = typeof json === 'object' && json !== null && Reflect.get(json, 'data')
      if (typeof data !== 'object' || data === null || textOf(data, 'type') !== 'notices') {
        return error(409, 'Conflict', 'The type of the resource must be "notices".', '/data/type')
      }
      const attributes: unknown = Reflect.get(data, 'attributes')
      const title = textOf(attributes, 'title') ?? ''
      if (title === '') {
        return error(422, 'Invalid Attribute', "title can't be blank", '/data/attributes/title')
      }
      const id = String(items.length + 1)
      return document(201, { data: { type: 'notices', id, attributes: { title } } })
    })
  )
})

export const backend: BackendFamily = {
  name: 'json-api',
  source: 'https://jsonapi.org/format/1.1/',
  list: {
    path: '/notices',
    fields: { id: 'id', title: 'attributes.title' },
    search: 'filter[title]'
  },
  save: {
    method: 'POST',
    path: '/notices',
    message: "title can't be blank",
    field: 'title',
    body: title => ({ data: { type: 'notices', attributes: { title } } }),
    operations: [
      { move: { title: 'data.attributes.title' } },
      { at: { path: 'data', operations: [{ constant: { type: 'notices' } }] } }
    ]
  },
  loginName: ({ username }) => username,
  wrongPassword: 'The user name or the password is wrong.',
  refreshes: true,
  start: (cleanUp): Promise<Backend> => {
    const tokens = new Tokens()
    return serveFamily(cleanUp, {
      family: backend,
      tokens,
      tokenIn: ({ headers }) => schemeToken(headers, 'Bearer'),
      endpoints: endpointsOf(tokens),
      otherwise: ({ method }, knownPath) =>
        knownPath
          ? error(405, 'Method Not Allowed', `${method} is not allowed here.`)
          : error(404, 'Not Found', 'There is no such resource.')
    })
  }
}
