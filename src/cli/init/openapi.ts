/** Reads a back-end's OpenAPI document: its sign-in, sign-out, user call and lists. */
import { isRecord, type Json, valueAt } from '../../json/values.ts'
import { loginFields } from './login-fields.ts'
import type { SignInCall } from './sign-in.ts'

export interface ApiRoute {
  readonly path: string
  /** Names of its parameters in the query. */
  readonly query: readonly string[]
  /** Further methods of the console at the path. */
  readonly methods: readonly string[]
}

/** The findings in a document or a recording. */
export interface ApiHints {
  readonly login?: Omit<SignInCall, 'extra'>
  readonly logout?: string
  readonly userPaths: readonly string[]
  readonly routes: readonly ApiRoute[]
  /** Lists and records that were left out, since `init` looks at few. */
  readonly skipped: number
}

/** Bounded: `init` asks each of them. */
export const maxRoutes = 30
const maxPaths = 5000
const maxRefs = 20

const loginPath = /(log|sign)[-_]?in|\/(auth|token|session|local)s?\/?$/i
const otherPassword = /register|sign[-_]?up|reset|forgot|change|password|refresh/i
export const logoutPath = /(log|sign)[-_]?out|outLogin/i
const userPath = /(^|\/)(me|whoami|user[-_]?info|getInfo|getUserInfo|current[-_]?user|profile)\/?$/i
const noData =
  /export|download|captcha|health|metrics|swagger|api-docs|openapi|\.(js|css|png|html)$/i

/** @param base the path of the back-end's URL, which the document may repeat */
export function readOpenApi(document: Json, base: string): ApiHints {
  const reader = new DocumentReader(document, base)
  const operations = reader.operations()
  const login = reader.login(operations)
  const logout = operations.find(({ method, path }) => method !== 'get' && logoutPath.test(path))
  const gets = operations.filter(({ method, path }) => method === 'get' && isPlain(path))
  const readable = gets.filter(({ operation }) => !reader.needsQuery(operation))
  const lists = readable.filter(({ operation }) => reader.isList(operation))
  return {
    ...(login !== undefined && { login }),
    ...(logout !== undefined && { logout: logout.path }),
    userPaths: gets.map(({ path }) => path).filter(path => userPath.test(path)),
    routes: lists.slice(0, maxRoutes).map(({ path, operation }) => ({
      path,
      query: reader.queryNames(operation),
      methods: []
    })),
    skipped: Math.max(0, lists.length - maxRoutes)
  }
}

export function isPlain(path: string): boolean {
  return !path.includes('{') && !noData.test(path) && !logoutPath.test(path)
}

interface Operation {
  readonly method: string
  readonly path: string
  readonly operation: Json
}

class DocumentReader {
  readonly #document: Json
  readonly #prefix: string
  /** Schemas without a list, and how deep each was searched: many responses share them. */
  readonly #searched = new Map<Json, number>()

  constructor(document: Json, base: string) {
    this.#document = document
    const prefix = serverPath(document)
    this.#prefix = prefix !== '' && base.endsWith(prefix) ? '' : prefix
  }

  operations(): Operation[] {
    const paths = valueAt(this.#document, ['paths'])
    if (!isRecord(paths)) return []
    return Object.entries(paths)
      .slice(0, maxPaths)
      .flatMap(([path, item]) =>
        Object.entries(isRecord(item) ? item : {}).map(([method, operation]) => ({
          method,
          path: this.#prefix + path,
          operation
        }))
      )
      .filter(({ path }) => /^\/[!-~]*$/.test(path))
  }

  login(operations: readonly Operation[]): ApiHints['login'] {
    for (const { method, path, operation } of operations) {
      if (method !== 'post' || !loginPath.test(path) || otherPassword.test(path)) continue
      const { schema, format } = this.#bodyOf(operation)
      const fields = loginFields(Object.keys(this.#propertiesOf(schema)))
      if (fields !== undefined) return { path, format, ...fields }
    }
    return undefined
  }

  /** Whether it cannot be called without a value that only the console knows. */
  needsQuery(operation: Json): boolean {
    return this.#parameters(operation).some(
      parameter => parameter['required'] === true && parameter['in'] === 'query'
    )
  }

  queryNames(operation: Json): string[] {
    return this.#parameters(operation)
      .filter(parameter => parameter['in'] === 'query')
      .map(({ name }) => String(name))
  }

  /** Whether a successful response is a list, or an object around one. */
  isList(operation: Json): boolean {
    const responses = valueAt(operation, ['responses'])
    const success = ['200', 'default'].map(status => valueAt(responses, [status]))
    const response = this.#resolve(success.find(isRecord))
    return this.#hasList(this.#schemaIn(response), 3)
  }

  #hasList(schema: Json, depth: number): boolean {
    const resolved = this.#resolve(schema)
    if (valueAt(resolved, ['type']) === 'array') return true
    if (depth <= (this.#searched.get(resolved) ?? 0)) return false
    const members = Object.values(this.#propertiesOf(resolved))
    if (members.some(each => this.#hasList(each, depth - 1))) return true
    this.#searched.set(resolved, depth)
    return false
  }

  #parameters(operation: Json): Array<Record<string, Json>> {
    const parameters = valueAt(operation, ['parameters'])
    const list = Array.isArray(parameters) ? (parameters as Json[]) : []
    return list.map(each => this.#resolve(each)).filter(isRecord)
  }

  #bodyOf(operation: Json): { schema: Json; format: 'json' | 'form' } {
    const body = this.#resolve(valueAt(operation, ['requestBody']))
    const content = valueAt(body, ['content'])
    if (isRecord(content)) {
      const type = Object.keys(content).find(each => each.includes('json'))
      const form = Object.keys(content).find(each => each.includes('form'))
      const name = type ?? form ?? ''
      const format = type === undefined ? 'form' : 'json'
      return { schema: valueAt(content, [name, 'schema']), format }
    }
    // Swagger 2: the body is a parameter, or each member of a form is one.
    const parameters = this.#parameters(operation)
    const whole = parameters.find(parameter => parameter['in'] === 'body')
    if (whole !== undefined) return { schema: whole['schema'], format: 'json' }
    const fields = parameters.filter(parameter => parameter['in'] === 'formData')
    const properties = Object.fromEntries(fields.map(({ name }) => [String(name), {}]))
    return { schema: { properties }, format: 'form' }
  }

  #schemaIn(response: Json): Json {
    const content = valueAt(response, ['content'])
    if (!isRecord(content)) return valueAt(response, ['schema'])
    const type = Object.keys(content).find(each => each.includes('json') || each === '*/*')
    return type === undefined ? null : valueAt(content, [type, 'schema'])
  }

  #propertiesOf(schema: Json): Record<string, Json> {
    const resolved = this.#resolve(schema)
    const parts = valueAt(resolved, ['allOf'])
    const all = [resolved, ...(Array.isArray(parts) ? (parts as Json[]) : [])]
    return Object.assign(
      {},
      ...all.map(part => {
        const properties = valueAt(this.#resolve(part), ['properties'])
        return isRecord(properties) ? properties : {}
      })
    ) as Record<string, Json>
  }

  /** Follows references within the document. Bounded: a document may refer in a circle. */
  #resolve(value: Json): Json {
    let current = value
    for (let steps = 0; steps < maxRefs; steps++) {
      const reference = isRecord(current) ? current['$ref'] : undefined
      if (typeof reference !== 'string' || !reference.startsWith('#/')) return current
      const path = reference.slice(2).split('/')
      current = valueAt(
        this.#document,
        path.map(step => step.replaceAll('~1', '/').replaceAll('~0', '~'))
      )
    }
    return null
  }
}

/** The path that all paths of the document stand below. */
function serverPath(document: Json): string {
  const basePath = valueAt(document, ['basePath'])
  const url = typeof basePath === 'string' ? basePath : valueAt(document, ['servers', '0', 'url'])
  if (typeof url !== 'string' || !URL.canParse(url, 'http://server')) return ''
  const { pathname } = new URL(url, 'http://server')
  return pathname.endsWith('/') ? pathname.slice(0, -1) : pathname
}
