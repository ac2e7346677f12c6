/**
 * Back-ends of the matrix: one server on loopback, and the habits of each back-end family as data,
 * as strict as the real one. Each file of `backends/` exports one as `backend`.
 */
import { createHmac, randomBytes } from 'node:crypto'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse
} from 'node:http'
import { buffer } from 'node:stream/consumers'
import { listen } from '../support/ports.ts'

export const backendNames = [
  'ruoyi',
  'jeecg',
  'yudao',
  'gin-vue-admin',
  'drf',
  'strapi',
  'directus',
  'json-api'
] as const
export type BackendName = (typeof backendNames)[number]

export interface TestUser {
  readonly id: number
  readonly username: string
  readonly password: string
  /** The display name. */
  readonly name: string
  readonly role: 'admin' | 'user'
}

/**
 * The users of every back-end. Names have at least 5 characters (the form of gin-vue-admin) and
 * passwords at most 16 (yudao).
 */
export const users = {
  admin: {
    id: 1,
    username: 'admin',
    password: 'Admin-of-matrix1',
    name: 'Ada Admin',
    role: 'admin'
  },
  user: {
    id: 2,
    username: 'member',
    password: 'User-of-matrix22',
    name: 'Uwe User',
    role: 'user'
  }
} as const satisfies Record<string, TestUser>

/** Item 1 is the first of page 1. Families give these members names of their own. */
export const items = Array.from({ length: 25 }, (_, index) => ({
  id: index + 1,
  title: `Notice ${index + 1}`
}))

/** The text in every captcha picture. */
export const captchaText = '135790'
/** An empty GIF. */
export const captchaPicture = Buffer.from('GIF89a').toString('base64')

/** How a back-end gets to know users who signed in elsewhere. */
export const service = {
  key: 'key-of-the-service',
  jwtSecret: 'secret-of-the-gateway-and-back-end'
}

/** What a back-end of a family offers, under the family's own names. */
interface Family {
  readonly name: BackendName
  /** How a request carries a token, as in the preset of the family. */
  readonly credential: string
  /** `owner/name@commit` that the habits were read from. */
  readonly source: string
  /** GET, the items page by page. */
  readonly list: {
    readonly path: string
    /** The names of an item's members. */
    readonly fields: { readonly id: string; readonly title: string }
    /** The parameter that looks for a title. */
    readonly search: string
  }
  /** POST, saves an item. Refuses one with an empty title as the family refuses a form. */
  readonly save: {
    readonly path: string
    /** The text that the family answers for an empty title. */
    readonly message: string
    /** The member that the family names with it, if it names one. */
    readonly field?: string
    /** The operations of a shape that make the family's body of `{ title }`. */
    readonly operations: readonly unknown[]
  }
  /** What a user types as the user name. Default: the name itself. */
  readonly loginName: (user: TestUser) => string
  /** The text of the family for a wrong password. */
  readonly wrongPassword: string
  /** The text of the family for a wrong captcha, if it has captchas. */
  readonly wrongCaptcha?: string
}

/** How it is served. */
interface Served {
  /** The path below which all endpoints stand. */
  readonly prefix?: string
  /** The token that a request carries, by the family's transport. */
  readonly tokenIn: (request: Request) => string | undefined
  /** By `METHOD /path`, below the prefix. `*` at the end stands for the last segment. */
  readonly open: Readonly<Record<string, (visit: Visit) => Response>>
  /** Those that need a valid token. */
  readonly guarded: Readonly<Record<string, (visit: Visit & Caller) => Response>>
  readonly unauthorized: (request: Request) => Response
  /** What an endpoint refuses before it does anything, such as a body of another type. */
  readonly refuse?: (visit: Visit) => Response | undefined
  /** @param knownPath whether the path has an endpoint with another method */
  readonly otherwise: (request: Request, knownPath: boolean) => Response
}

export interface BackendFamily extends Family {
  readonly start: (
    cleanUp: (undo: () => unknown) => void,
    options?: BackendOptions
  ) => Promise<Backend>
}

export interface BackendOptions {
  /** Sign-ins need a captcha. Default: false, which is a setting of each family that has them. */
  readonly captcha?: boolean
  /** Paths of jeecg whose parameters must be signed. Default: those of its own settings. */
  readonly signUrls?: readonly string[]
}

/** A request that arrived whole. */
interface Call extends Request {
  readonly body: string
  /** The token that was sent, valid or not. */
  readonly token: string | undefined
  /** The user behind it, when the call came. */
  readonly user: TestUser | undefined
}

/** A running back-end. */
export interface Backend {
  readonly url: string
  readonly calls: readonly Call[]
  /** All access tokens expire; refresh tokens stay valid. */
  readonly expireTokens: () => void
  /** All tokens and refresh tokens end, as if an administrator had signed everybody out. */
  readonly endAllSessions: () => void
}

export interface Request {
  readonly method: string
  /** As it was sent, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  /** The content type; empty without one. */
  readonly type: string
  readonly text: string
  /** The JSON body, or undefined where there is none or it is not JSON. */
  readonly json: unknown
}

/** A request, and what the back-end knows. */
export interface Visit extends Request {
  /** The path below the prefix, its last segment `*` where the endpoint says so. */
  readonly endpoint: string
  /** A text member of the JSON body. */
  readonly member: (name: string) => string | undefined
  /** The user behind a valid access token. */
  readonly user: TestUser | undefined
  readonly token: string | undefined
  readonly tokens: Tokens
  readonly captchas: Captchas
  readonly options: BackendOptions
}

interface Caller {
  readonly user: TestUser
  readonly token: string
}

export interface Response {
  readonly status: number
  readonly json?: unknown
  /** Sent as plain text, in place of `json`. */
  readonly text?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface Grant {
  readonly user: TestUser
  readonly access: string
  readonly refresh: string
}

/** The tokens of a back-end: opaque, valid until they are ended. */
export class Tokens {
  readonly #access = new Map<string, TestUser>()
  readonly #refresh = new Map<string, Grant>()

  issue(user: TestUser): Grant {
    const [access, refresh] = [randomKey(), randomKey()]
    const grant = { user, access, refresh }
    this.#access.set(access, user)
    this.#refresh.set(refresh, grant)
    return grant
  }

  userOf(access: string | undefined): TestUser | undefined {
    return access === undefined ? undefined : this.#access.get(access)
  }

  /** Ends the tokens of a grant and issues others. Undefined: the refresh token is not valid. */
  renew(refresh: string): Grant | undefined {
    const grant = this.#refresh.get(refresh)
    if (grant === undefined) return undefined
    this.end(grant.access)
    return this.issue(grant.user)
  }

  /** Ends an access token, and its refresh token with it. */
  end(access: string): void {
    this.#access.delete(access)
    for (const [refresh, grant] of this.#refresh) {
      if (grant.access === access) this.#refresh.delete(refresh)
    }
  }

  expireAccess(): void {
    this.#access.clear()
  }

  endAll(): void {
    this.#access.clear()
    this.#refresh.clear()
  }
}

/** The captchas that a back-end has shown and that nobody has used yet. */
class Captchas {
  readonly #shown = new Set<string>()

  show(key = randomKey()): string {
    this.#shown.add(key)
    return key
  }

  /** For one attempt, right or wrong. Undefined: it was never shown, or is used. */
  take(key: string | undefined, text: string | undefined): boolean | undefined {
    if (key === undefined || !this.#shown.delete(key)) return undefined
    return text === captchaText
  }

  /** For attempts until one is right. */
  match(key: string | undefined, text: string | undefined): boolean {
    if (key === undefined || text !== captchaText) return false
    return this.#shown.delete(key)
  }
}

function randomKey(): string {
  return randomBytes(24).toString('base64url')
}

type Defaulted = 'loginName' | 'credential'

/** A family, served on a free loopback port; its calls are recorded. */
export function familyOf(
  given: Omit<Family, Defaulted> & Partial<Pick<Family, Defaulted>> & Served
): BackendFamily {
  return {
    loginName: ({ username }) => username,
    credential: 'bearer',
    ...given,
    start: async (cleanUp, options = {}) => {
      const calls: Call[] = []
      const tokens = new Tokens()
      const state = { tokens, captchas: new Captchas(), options }
      const respond = (request: Request, response: ServerResponse) => {
        const token = given.tokenIn(request)
        const user = tokens.userOf(token) ?? userOfJwt(token)
        calls.push({ ...request, body: request.text, token, user })
        send(response, responseOf(given, request, state))
      }
      const server = createServer((message, response) => {
        buffer(message).then(
          body => respond(requestOf(message, body), response),
          () => {}
        )
      })
      server.keepAliveTimeout = 0
      const port = await listen(server)
      cleanUp(async () => {
        server.closeAllConnections()
        await new Promise(resolve => server.close(resolve))
      })
      return {
        url: `http://127.0.0.1:${port}`,
        calls,
        expireTokens: () => tokens.expireAccess(),
        endAllSessions: () => tokens.endAll()
      }
    }
  }
}

function responseOf(
  { prefix = '', tokenIn, open, guarded, refuse, ...family }: Served,
  request: Request,
  state: Pick<Visit, 'tokens' | 'captchas' | 'options'>
): Response {
  const { method, path, json, headers } = request
  if (path === '/service/token') {
    if (headers['x-service-key'] !== service.key) return { status: 401, json: {} }
    const known = Object.values(users).find(each => each.username === textOf(json, 'username'))
    return known === undefined
      ? { status: 404, json: {} }
      : { status: 200, json: { token: state.tokens.issue(known).access } }
  }
  const paths = [open, guarded].flatMap(Object.keys).map(each => each.split(' ')[1] ?? '')
  const below = path.startsWith(`${prefix}/`) ? path.slice(prefix.length) : ''
  const endpoint = paths.includes(below) ? below : below.replace(/[^/]+$/, '*')
  const name = `${method} ${endpoint}`
  if (!(name in open) && !(name in guarded)) {
    return family.otherwise(request, paths.includes(endpoint))
  }
  const token = tokenIn(request)
  const user = state.tokens.userOf(token) ?? userOfJwt(token)
  const member = (key: string) => textOf(json, key)
  const visit = { ...request, ...state, endpoint, member, user, token }
  const isCaller = user !== undefined && token !== undefined
  if (name in guarded && !isCaller) return family.unauthorized(request)
  const refusal = refuse?.(visit)
  if (refusal !== undefined) return refusal
  const response = isCaller ? guarded[name]?.({ ...visit, user, token }) : undefined
  return response ?? open[name]?.(visit) ?? family.otherwise(request, true)
}

/** Of a token that the gateway signed. */
function userOfJwt(token = ''): TestUser | undefined {
  const [header, payload = '', signature] = token.split('.')
  const hmac = createHmac('sha256', service.jwtSecret).update(`${header}.${payload}`)
  if (signature !== hmac.digest('base64url')) return undefined
  const claims: unknown = parse(Buffer.from(payload, 'base64url').toString())
  return Object.values(users).find(each => each.username === textOf(claims, 'preferred_username'))
}

function send(response: ServerResponse, { status, json, text, headers }: Response): void {
  const type = json === undefined ? 'text/plain' : 'application/json'
  const content = json === undefined ? text : JSON.stringify(json)
  response
    .writeHead(status, { ...(content !== undefined && { 'content-type': type }), ...headers })
    .end(content)
}

function requestOf({ method = '', url = '/', headers }: IncomingMessage, body: Buffer): Request {
  const { pathname: path, searchParams: query } = new URL(url, 'http://back-end')
  const text = body.toString()
  const type = headers['content-type'] ?? ''
  const json = type.startsWith('application/') ? parse(text) : undefined
  return { method, path, query, headers, type, text, json }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A text member of an object. */
export function textOf(json: unknown, member: string): string | undefined {
  if (typeof json !== 'object' || json === null) return undefined
  const value: unknown = Reflect.get(json, member)
  return typeof value === 'string' ? value : undefined
}

/** The user with this name and password. */
export function userWith(
  username: string | undefined,
  password: string | undefined
): TestUser | undefined {
  return Object.values(users).find(user => user.username === username && user.password === password)
}

/** The items of a page; page 1 is the first. */
export function pageOf(page: number, size: number, list = items): typeof items {
  return list.slice((page - 1) * size, page * size)
}

/** The items whose title holds a text. Families differ in the name of the parameter. */
export function itemsWith(text: string | null): typeof items {
  return text === null ? items : items.filter(({ title }) => title.includes(text))
}

/** The token after `Bearer` in `Authorization`. */
export function bearerIn({ headers }: Pick<Request, 'headers'>): string | undefined {
  return /^Bearer (.*)$/.exec(headers.authorization ?? '')?.[1]
}
