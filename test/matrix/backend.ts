/**
 * A back-end of the matrix: a small server on loopback with the habits of one back-end family, as
 * strict as the real one. Each file of `backends/` exports one as `backend`.
 */
import { randomBytes } from 'node:crypto'
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

export const itemCount = 25

/** Item 1 is the first of page 1. Families give these members names of their own. */
export const items = Array.from({ length: itemCount }, (_, index) => ({
  id: index + 1,
  title: `Notice ${index + 1}`
}))

/** The text in every captcha picture. */
export const captchaText = '135790'
/** An empty GIF. */
export const captchaPicture = Buffer.from('GIF89a').toString('base64')

/** What a back-end of a family offers, under the family's own names. */
export interface BackendFamily {
  readonly name: BackendName
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
  /** Saves an item. Refuses one with an empty title as the family refuses a form. */
  readonly save: {
    readonly method: 'POST'
    readonly path: string
    /** The text that the family answers for an empty title. */
    readonly message: string
    /** The member that the family names with it, if it names one. */
    readonly field?: string
    /** The body of the family. */
    readonly body: (title: string) => unknown
    /** The operations of a shape that make this body of `{ title }`. */
    readonly operations: readonly unknown[]
  }
  /** What a user types as the user name. */
  readonly loginName: (user: TestUser) => string
  /** The text of the family for a wrong password. */
  readonly wrongPassword: string
  /** The text of the family for a wrong captcha, if it has captchas. */
  readonly wrongCaptcha?: string
  /** Whether a token can be renewed. */
  readonly refreshes: boolean
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

/** A request that arrived whole, and its response. */
export interface Call {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly status: number
  /** The token that was sent, valid or not. */
  readonly token?: string
  /** Whom the token identified. */
  readonly username?: string
}

/** A running back-end. */
export interface Backend {
  readonly family: BackendFamily
  readonly url: string
  readonly calls: readonly Call[]
  /** A token of the back-end, as its own sign-in would give to this user. */
  readonly tokenOf: (user: TestUser) => string
  /** All access tokens expire; refresh tokens stay valid. */
  readonly expireTokens: () => void
  /** All tokens and refresh tokens end, as if an administrator had signed everybody out. */
  readonly endAllSessions: () => void
}

/** The request, as the handler of a family gets it. */
export interface Request {
  readonly method: string
  /** As it was sent, without the query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The JSON body, or undefined where there is none or it is not JSON. */
  readonly json: unknown
}

export interface Response {
  readonly status: number
  readonly json?: unknown
  /** Sent as plain text, in place of `json`. */
  readonly text?: string
  readonly headers?: Readonly<Record<string, string>>
}

export type Handler = (request: Request, caller: Caller | undefined) => Response
export type GuardedHandler = (request: Request, caller: Caller) => Response

/** Endpoints that need a valid token; `refuse` answers requests without one. */
export const guard =
  (refuse: (request: Request) => Response) =>
  (handle: GuardedHandler): Handler =>
  (request, caller) =>
    caller === undefined ? refuse(request) : handle(request, caller)

/** The user behind a valid access token. */
export interface Caller {
  readonly user: TestUser
  readonly token: string
}

interface Grant {
  readonly user: TestUser
  readonly access: string
}

/** The tokens of a back-end: opaque, valid until they are ended. */
export class Tokens {
  readonly #access = new Map<string, TestUser>()
  readonly #refresh = new Map<string, Grant>()

  issue(user: TestUser): { access: string; refresh: string } {
    const access = randomBytes(24).toString('base64url')
    const refresh = randomBytes(24).toString('base64url')
    this.#access.set(access, user)
    this.#refresh.set(refresh, { user, access })
    return { access, refresh }
  }

  userOf(access: string | undefined): TestUser | undefined {
    return access === undefined ? undefined : this.#access.get(access)
  }

  /** Ends the tokens of a grant and issues others. Undefined: the refresh token is not valid. */
  renew(refresh: string): { user: TestUser; access: string; refresh: string } | undefined {
    const grant = this.#refresh.get(refresh)
    if (grant === undefined) return undefined
    this.#refresh.delete(refresh)
    this.#access.delete(grant.access)
    return { user: grant.user, ...this.issue(grant.user) }
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

interface ServedFamily {
  readonly family: BackendFamily
  readonly tokens: Tokens
  /** The token that a request carries, by the family's transport. */
  readonly tokenIn: (request: Request) => string | undefined
  /** The path below which all endpoints stand. */
  readonly prefix?: string
  /** By `METHOD /path`, below the prefix. `*` at the end stands for the last segment. */
  readonly endpoints: Readonly<Record<string, Handler>>
  /** @param knownPath whether the path has an endpoint with another method */
  readonly otherwise: (request: Request, knownPath: boolean) => Response
}

/** Serves a family on a free loopback port and records its calls. */
export async function serveFamily(
  cleanUp: (undo: () => unknown) => void,
  { family, tokens, tokenIn, prefix = '', endpoints, otherwise }: ServedFamily
): Promise<Backend> {
  const calls: Call[] = []
  const paths = new Set(Object.keys(endpoints).map(endpoint => endpoint.split(' ')[1] ?? ''))
  const endpointPath = (path: string) => {
    if (!path.startsWith(`${prefix}/`)) return ''
    const below = path.slice(prefix.length)
    return paths.has(below) ? below : below.replace(/[^/]+$/, '*')
  }
  const respond = (message: IncomingMessage, response: ServerResponse, body: Buffer) => {
    const request = requestOf(message, body)
    const token = tokenIn(request)
    const user = tokens.userOf(token)
    const caller = user !== undefined && token !== undefined ? { user, token } : undefined
    const { method, path, query, text } = request
    const endpoint = endpointPath(path)
    const handle = endpoints[`${method} ${endpoint}`]
    const result =
      handle === undefined ? otherwise(request, paths.has(endpoint)) : handle(request, caller)
    const { status } = result
    calls.push({
      method,
      path,
      query,
      headers: request.headers,
      body: text,
      status,
      ...(token !== undefined && { token }),
      ...(user !== undefined && { username: user.username })
    })
    const type = result.json === undefined ? 'text/plain' : 'application/json'
    const content = result.json === undefined ? result.text : JSON.stringify(result.json)
    response
      .writeHead(status, {
        ...(content !== undefined && { 'content-type': type }),
        ...result.headers
      })
      .end(content)
  }
  const server = createServer((message, response) => {
    buffer(message).then(
      body => respond(message, response, body),
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
    family,
    url: `http://127.0.0.1:${port}`,
    calls,
    tokenOf: user => tokens.issue(user).access,
    expireTokens: () => tokens.expireAccess(),
    endAllSessions: () => tokens.endAll()
  }
}

function requestOf(message: IncomingMessage, body: Buffer): Request {
  const { pathname, searchParams } = new URL(message.url ?? '/', 'http://back-end')
  const text = body.toString()
  return {
    method: message.method ?? '',
    path: pathname,
    query: searchParams,
    headers: message.headers,
    text,
    json: (message.headers['content-type'] ?? '').startsWith('application/')
      ? parse(text)
      : undefined
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A text member of a JSON body. */
export function textOf(json: unknown, member: string): string | undefined {
  if (typeof json !== 'object' || json === null) return undefined
  const value: unknown = Reflect.get(json, member)
  return typeof value === 'string' ? value : undefined
}

export function userNamed(username: string | undefined): TestUser | undefined {
  return Object.values(users).find(user => user.username === username)
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

/** The captchas that a back-end has shown and that nobody has used yet. */
export class Captchas {
  readonly #shown = new Set<string>()

  show(key: string = randomBytes(16).toString('hex')): string {
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

/** The token after a scheme such as `Bearer` in `Authorization`. */
export function schemeToken(headers: IncomingHttpHeaders, scheme: string): string | undefined {
  const value = headers.authorization
  return value?.startsWith(`${scheme} `) === true ? value.slice(scheme.length + 1) : undefined
}
