/** Serves a back-end on loopback by its data, as strict as the real one. */
import { createHmac, randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { type Seen, testUpstream } from '../support/upstream.ts'
import type { BackendSpec } from './backend.ts'
import type { Json } from './console.ts'

/** The user. Names have at least 5 characters (gin-vue-admin), and passwords at most 16 (yudao). */
export const admin = {
  id: 1,
  username: 'admin',
  password: 'Admin-of-matrix1',
  /** The display name. */
  name: 'Ada Admin',
  role: 'admin'
}

export const notices = Array.from({ length: 25 }, (_, index) => ({
  id: index + 1,
  title: `Notice ${index + 1}`
}))

/** The text in every captcha picture, which is an empty GIF. */
export const captchaText = '135790'
export const captchaPicture = Buffer.from('GIF89a').toString('base64')

/** How a back-end gets to know users who signed in elsewhere. */
export const service = {
  key: 'key-of-the-service',
  jwtSecret: 'secret-of-the-gateway-and-back-end'
}

export interface BackendOptions {
  /** Sign-ins need a captcha. Default: false, which is a setting of each back-end that has them. */
  readonly captcha?: boolean
  /** Paths of jeecg whose parameters must be signed. Default: those of its own settings. */
  readonly signUrls?: readonly string[]
}

/** A request that arrived whole, and what the back-end knows. */
export interface Visit {
  readonly method: string
  /** As it was sent, without the query. */
  readonly path: string
  /** The path; `*` is its last segment where a call says so. */
  readonly endpoint: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  /** The content type; empty without one. */
  readonly type: string
  readonly body: string
  /** Undefined where the body is not JSON. */
  readonly json: Json
  /** The token that was sent, valid or not. */
  readonly token: string | undefined
  /** Whether it was the user's, and valid, when the call came. */
  readonly isUser: boolean
  readonly tokens: Tokens
  readonly captchas: Captchas
  readonly options: BackendOptions
}

export interface Response {
  readonly status: number
  readonly json?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface Grant {
  readonly access: string
  readonly refresh: string
}

const randomKey = () => randomBytes(24).toString('base64url')

/** Opaque tokens, valid until they are ended. */
class Tokens {
  #grants: Grant[] = []
  readonly #expired = new Set<Grant>()

  issue(): Grant {
    const grant = { access: randomKey(), refresh: randomKey() }
    this.#grants.push(grant)
    return grant
  }

  isValid(token: string | undefined): boolean {
    return this.#grants.some(each => each.access === token && !this.#expired.has(each))
  }

  /** Ends the tokens of a grant and issues others. Undefined: the refresh token is not valid. */
  renew(refresh: string | undefined): Grant | undefined {
    const grant = this.#grants.find(each => each.refresh === refresh)
    this.end(grant?.access)
    return grant && this.issue()
  }

  /** Ends an access token, and its refresh token with it. */
  end(access: string | undefined): void {
    this.#grants = this.#grants.filter(each => each.access !== access)
  }

  /** Refresh tokens stay valid. */
  expireAccess(): void {
    for (const grant of this.#grants) this.#expired.add(grant)
  }

  /** As if an administrator had signed everybody out. */
  endAll(): void {
    this.#grants = []
  }
}

/** The captchas that a back-end has shown. */
class Captchas {
  readonly #shown = new Set<string>()

  show(key = randomKey()): string {
    this.#shown.add(key)
    return key
  }

  /** For one attempt, right or wrong. */
  take(key: string | undefined, text: string | undefined): boolean {
    return this.#shown.delete(key ?? '') && text === captchaText
  }
}

export async function startBackend(
  cleanUp: (undo: () => unknown) => void,
  spec: BackendSpec,
  options: BackendOptions = {}
) {
  const calls: Visit[] = []
  const tokens = new Tokens()
  const state = { tokens, captchas: new Captchas(), options }
  const { url } = await testUpstream(cleanUp, (_request, response, seen) => {
    const visit = visitOf(spec, seen, state)
    calls.push(visit)
    const { status, json, headers } = responseOf(spec, visit)
    const type = json !== undefined && { 'content-type': 'application/json' }
    response.writeHead(status, { ...type, ...headers }).end(JSON.stringify(json))
  })
  return { url, calls, tokens }
}

const callsOf = (spec: BackendSpec): readonly string[] => [
  ...[spec.signIn.at, `GET ${spec.list.path}`, `POST ${spec.save.path}`],
  ...Object.keys({ ...spec.open, ...spec.guarded })
]
const pathsOf = (spec: BackendSpec) => callsOf(spec).map(each => each.split(' ')[1] ?? '')

function visitOf(
  spec: BackendSpec,
  { method, url, headers, body: bytes }: Seen,
  state: Pick<Visit, 'tokens' | 'captchas' | 'options'>
): Visit {
  const { tokenIn = bearerIn } = spec
  const { pathname: path, searchParams: query } = new URL(url, 'http://back-end')
  const endpoint = pathsOf(spec).includes(path) ? path : path.replace(/[^/]+$/, '*')
  const body = bytes.toString()
  const type = headers['content-type'] ?? ''
  const json: Json = type.startsWith('application/') ? parse(body) : undefined
  const token = tokenIn({ headers, query }) || undefined
  const isUser = state.tokens.isValid(token) || isJwtOfUser(token)
  const call = { method, path, endpoint, query, headers, type, body, json, token, isUser }
  return { ...call, ...state }
}

function responseOf(spec: BackendSpec, visit: Visit): Response {
  const { method, path, endpoint, isUser } = visit
  if (path === '/service/token') return exchangeOf(visit)
  const { signIn, open = {}, guarded } = spec
  const call = `${method} ${endpoint}`
  if (!callsOf(spec).includes(call)) return { status: 404, json: {} }
  const isSignIn = call === signIn.at
  const answer = isSignIn ? (visit: Visit) => signedIn(spec, visit) : open[call]
  if (answer === undefined && !isUser) return spec.unauthorized(visit)
  const refusal = spec.refuse?.(visit)
  if (refusal !== undefined) return refusal
  const { bodyType = 'application/json' } = spec
  if (!isSignIn && visit.body !== '' && !visit.type.startsWith(bodyType)) {
    return { status: 415, json: {} }
  }
  const calls = {
    [`GET ${spec.list.path}`]: () => listed(spec, visit),
    [`POST ${spec.save.path}`]: () => saved(spec, visit),
    ...guarded
  }
  return answer?.(visit) ?? calls[call]?.(visit) ?? { status: 500 }
}

function signedIn({ signIn, loginName = admin.username }: BackendSpec, visit: Visit): Response {
  const { fieldsOf = ({ json }: Visit): Json => json ?? {}, refuses, granted, refused } = signIn
  const refusal = refuses?.(visit)
  if (refusal !== undefined) return refusal
  const { username, password } = fieldsOf(visit)
  const isRight = username === loginName && password === admin.password
  return isRight ? granted(visit.tokens.issue()) : refused
}

function listed({ list }: BackendSpec, { query, headers }: Visit): Response {
  const { query: names, defaultSize = 10, maxSize = Infinity } = list
  const wanted = query.get(names.search) ?? ''
  const found = notices.filter(({ title }) => title.includes(wanted))
  const size = Math.min(Number(query.get(names.size) ?? defaultSize), maxSize)
  const page = Number(query.get(names.page) ?? 1)
  const last = Math.max(1, Math.ceil(found.length / size))
  const shown = list.staysInside ? Math.min(page, last) : page
  const { fields } = list
  const rows = found
    .slice((shown - 1) * size, shown * size)
    .map(({ id, title }) => ({ [fields.id]: id, [fields.title]: title }))
  return list.answer({ rows, total: found.length, page, size, last, query, headers })
}

function saved({ list, save }: BackendSpec, { json }: Visit): Response {
  const { titleOf = (body: Json): Json => body[list.fields.title] } = save
  const title: unknown = json === undefined ? undefined : titleOf(json)
  if (typeof title !== 'string' || title.trim() === '') return save.refused(title)
  return save.saved(notices.length + 1, title)
}

/** For the gateway, which has signed the user in elsewhere. */
function exchangeOf({ headers, json, tokens }: Visit): Response {
  if (headers['x-service-key'] !== service.key) return { status: 401, json: {} }
  if (json?.username !== admin.username) return { status: 404, json: {} }
  return { status: 200, json: { token: tokens.issue().access } }
}

/** Of a token that the gateway signed. */
function isJwtOfUser(token = ''): boolean {
  const [header, payload = '', signature] = token.split('.')
  const hmac = createHmac('sha256', service.jwtSecret).update(`${header}.${payload}`)
  const claims = parse(Buffer.from(payload, 'base64url').toString())
  return signature === hmac.digest('base64url') && claims?.preferred_username === admin.username
}

function parse(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The token after `Bearer` in `Authorization`. */
export function bearerIn({ headers }: Pick<Visit, 'headers'>): string | undefined {
  return /^Bearer (.*)$/.exec(headers.authorization ?? '')?.[1]
}
