/** Reads names and paths, never values, from a recording (HAR) of a console's traffic. */
import { parseKeepingDigits } from '../../json/digits.ts'
import { isRecord, type Json, valueAt } from '../../json/values.ts'
import { listPathsOf } from './lists.ts'
import { type LoginFields, loginFields } from './login-fields.ts'
import type { ConsoleHabits } from './model.ts'
import { type ApiHints, type ApiRoute, isPlain, logoutPath, maxRoutes } from './openapi.ts'
import { isText, membersOf } from './paths.ts'
import { isMemberName, type Redaction } from './redaction.ts'
import { userPathsOf } from './user.ts'

/** A request with a JSON response. */
interface Exchange {
  readonly method: string
  readonly path: string
  readonly query: readonly string[]
  readonly request: Json
  readonly isForm: boolean
  readonly response: Json
}

export interface Recording {
  readonly hints: ApiHints
  readonly habits: ConsoleHabits
  /** All paths that the console called. */
  readonly paths: readonly string[]
}

const maxEntries = 20_000
/** For messages. */
const kind = 'a credential of the recording'
/** Shorter values of headers and cookies are settings of a console, such as its language. */
const minCredential = 8
const secretName = /token|password|passwd|pwd|secret|^(key|sid|session|jwt)$/i
const secretHeader = /cookie|token|auth|key|session|secret/i
const pageName = /^(page|page_?num(ber)?|page_?no|page_?index|current|current_?page)$/i
const sizeName = /^(size|limit|page_?size|per_?page|rows|take)$/i
/** Ids, dates and e-mail addresses in a path are data. */
const dataSegment = /^\d|\d{4}|@|%|^[0-9a-f]{8}-|^[0-9a-f]{16,}$/i

/** Words of paths that are also values, such as those of roles. */
const genericWords = new Set(
  'api admin user users list system page info menu notice orders'.split(' ')
)

/** @param har the content of the file */
export function readHar(har: Json, redaction: Redaction): Recording {
  const entries = valueAt(har, ['log', 'entries'])
  const list = Array.isArray(entries) ? (entries as Json[]).slice(0, maxEntries) : []
  for (const entry of list) collectSecrets(entry, redaction)
  const exchanges = list.flatMap(entry => exchangeOf(entry, redaction))
  const paths = [...new Set(exchanges.map(({ path }) => path))]
  const safePaths = new Set(paths.filter(path => isSafePath(path, redaction)))
  const safe = exchanges.filter(({ path }) => safePaths.has(path))
  const login = safe.find(exchange => fieldsOf(exchange) !== undefined)
  const fields = login === undefined ? undefined : fieldsOf(login)
  const logout = safe.find(({ path }) => logoutPath.test(path))
  const typed = fields === undefined ? '' : textAt(login?.request, fields.username)
  const reads = safe.filter(({ method, path }) => method === 'GET' && isPlain(path))
  const profile = reads.find(({ response }) => isUser(response, typed))
  const others = reads.filter(({ path }) => path !== profile?.path)
  const routes = routesOf(others, safe)
  const paging = pagingOf(others)
  return {
    paths: [...safePaths],
    hints: {
      ...(login !== undefined && fields !== undefined && { login: callOf(login, fields) }),
      ...(logout !== undefined && { logout: logout.path }),
      userPaths: profile === undefined ? [] : [profile.path],
      routes: routes.slice(0, maxRoutes),
      skipped: Math.max(0, routes.length - maxRoutes)
    },
    habits: {
      ...(login !== undefined &&
        fields !== undefined && { login: { path: login.path, ...fields } }),
      ...(logout !== undefined && { logout: logout.path }),
      ...(profile !== undefined && { profile: profile.path }),
      ...(paging !== undefined && { paging })
    }
  }
}

/** Credentials in headers, cookies and bodies: they must never be printed or written. */
function collectSecrets(entry: Json, redaction: Redaction): void {
  for (const side of ['request', 'response']) {
    const headers = pairsOf(valueAt(entry, [side, 'headers'])).flatMap(secretsIn)
    const cookies = pairsOf(valueAt(entry, [side, 'cookies'])).map(({ value }) => value)
    for (const secret of [...headers, ...cookies]) {
      if (secret.length >= minCredential) redaction.add(secret, kind)
    }
  }
}

function secretsIn({ name, value }: Pair): string[] {
  const header = name.toLowerCase()
  if (header === 'cookie') return value.split(';').map(cookieValue)
  if (header === 'set-cookie') {
    return value.split('\n').map(cookie => cookieValue(cookie.split(';', 1)[0] ?? ''))
  }
  // `:authority` is the host.
  return secretHeader.test(name) && !name.startsWith(':') ? value.split(/[\s;,=]+/) : []
}

/** The names of cookies are no secrets: the config of a sign-in lists them. */
function cookieValue(cookie: string): string {
  return cookie.slice(cookie.indexOf('=') + 1).trim()
}

interface Pair {
  readonly name: string
  readonly value: string
}

function pairsOf(list: Json): Pair[] {
  return (Array.isArray(list) ? (list as Json[]) : []).flatMap(pair => {
    const [name, value] = [valueAt(pair, ['name']), valueAt(pair, ['value'])]
    return typeof name === 'string' && typeof value === 'string' ? [{ name, value }] : []
  })
}

function exchangeOf(entry: Json, redaction: Redaction): Exchange[] {
  const [url, method] = [valueAt(entry, ['request', 'url']), valueAt(entry, ['request', 'method'])]
  const response = contentOf(valueAt(entry, ['response', 'content']))
  if (typeof url !== 'string' || typeof method !== 'string' || !URL.canParse(url)) return []
  const type = String(valueAt(entry, ['request', 'postData', 'mimeType']))
  const isForm = type.includes('x-www-form-urlencoded')
  const posted = valueAt(entry, ['request', 'postData', 'text'])
  const request = isText(posted) ? bodyOf(posted, isForm) : undefined
  for (const body of [request, response]) {
    redaction.addValues(body)
    for (const { name, value } of membersOf(body)) {
      if (isText(value) && secretName.test(name)) redaction.add(value, kind)
    }
  }
  const { pathname, searchParams } = new URL(url)
  if (response === undefined) return []
  const query = [...new Set(searchParams.keys())].filter(isMemberName)
  return [{ method, path: pathname, query, request, isForm, response }]
}

/** The JSON of a recorded response; undefined for none. */
function contentOf(content: Json): Json {
  const text = valueAt(content, ['text'])
  if (!isText(text)) return undefined
  const isBase64 = valueAt(content, ['encoding']) === 'base64'
  return parse(isBase64 ? Buffer.from(text, 'base64').toString('utf8') : text)
}

function bodyOf(text: string, isForm: boolean): Json {
  return isForm ? Object.fromEntries(new URLSearchParams(text)) : parse(text)
}

function parse(text: string): Json {
  try {
    return parseKeepingDigits(text)
  } catch {
    return undefined
  }
}

/** A path whose segments are names of the API: none is an id, or a value of a response. */
function isSafePath(path: string, redaction: Redaction): boolean {
  const segments = path.split('/').filter(segment => segment !== '')
  return (
    /^\/[!-~]*$/.test(path) &&
    !segments.some(segment => dataSegment.test(segment)) &&
    !segments.some(segment => redaction.isValue(segment) && !genericWords.has(segment)) &&
    redaction.clean(path) === path
  )
}

function fieldsOf({ method, request }: Exchange): LoginFields | undefined {
  return method === 'POST' && isRecord(request) ? loginFields(Object.keys(request)) : undefined
}

function callOf({ path, isForm }: Exchange, fields: LoginFields): NonNullable<ApiHints['login']> {
  return { path, format: isForm ? 'form' : 'json', ...fields }
}

function textAt(body: Json, name: string): string {
  const value = valueAt(body, [name])
  return typeof value === 'string' ? value : ''
}

function isUser(response: Json, typed: string): boolean {
  const user = userPathsOf(response, typed)
  return (
    user !== undefined && (typed === '' || user.username !== undefined || user.roles !== undefined)
  )
}

/** The lists and records that the console reads, each path once. */
function routesOf(reads: readonly Exchange[], all: readonly Exchange[]): ApiRoute[] {
  const readsByPath = Map.groupBy(reads, ({ path }) => path)
  const allByPath = Map.groupBy(all, ({ path }) => path)
  return [...readsByPath].map(([path, exchanges]) => {
    const methods = (allByPath.get(path) ?? [])
      .map(({ method }) => method)
      .filter(method => ['POST', 'PUT', 'PATCH', 'DELETE'].includes(method))
    const query = [...new Set(exchanges.flatMap(exchange => exchange.query))]
    return { path, query, methods: [...new Set(methods)] }
  })
}

function pagingOf(reads: readonly Exchange[]): ConsoleHabits['paging'] {
  const lists = reads.filter(({ response }) => listPathsOf(response) !== undefined)
  for (const { query } of lists) {
    const page = query.find(name => pageName.test(name))
    const size = query.find(name => sizeName.test(name))
    if (page !== undefined && size !== undefined) return { page, size }
  }
  return undefined
}
