/** A call of sign-in to its back-end: body, query and headers as config writes them. */
import type { AttemptPurpose, Recorded, Trail } from '../observability/trail.ts'
import type { Credential } from '../session/types.ts'
import { headerSafe, maxResponseBytes, type RawResponse } from './login-response.ts'

type Texts = Readonly<Record<string, string>>

/** Sends a request to the back-end. Passed in, since login does not import proxy. */
export type Send = (options: {
  method: string
  path: string
  headers: Record<string, string>
  body?: string
  /** To the last byte. */
  timeoutMs: number
  maxBytes: number
  recorded?: Recorded | undefined
}) => Promise<RawResponse>

export interface BackEnd {
  readonly send: Send
  /** How it takes credentials: `none`, `bearer`, `cookies` or `header:NAME`. */
  readonly credentialStyle: string
  /** The word before the token. Without it: `Bearer` for `bearer`, none for a header. */
  readonly credentialScheme?: string | undefined
}

/** A call with a session's credential. */
interface SessionCall {
  readonly path: string
  readonly method: string
  readonly format?: 'json' | 'form'
  readonly body?: Readonly<Record<string, unknown>>
  readonly query?: Texts
  readonly headers?: Texts
  /** Headers that are no filled. */
  readonly fixedHeaders?: Texts
  readonly sendCredential?: boolean
  readonly timeoutMs: number
  readonly purpose: AttemptPurpose
  /** Of the request that needs it. */
  readonly trail: Trail | undefined
}

export const contentTypes = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded'
} as const

/** A header must replace one of the same name in another case, and not stand beside it. */
export function withLowerNames(headers: Texts): Record<string, string> {
  const pairs = Object.entries(headers)
  return Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value]))
}

/** @throws GatewayError `upstream.invalid` for a token that no header can hold */
export function callWith(
  backEnd: BackEnd,
  call: SessionCall,
  credential: Credential
): Promise<RawResponse> {
  const { token = '', refreshToken = '' } = credential
  const { format = 'json', sendCredential = true, timeoutMs, purpose, trail } = call
  const { body, query = {}, headers = {} } = call
  const filled = fill({ body, query, headers }, { token, refreshToken })
  for (const value of Object.values(filled.headers)) headerSafe(value)
  return backEnd.send({
    method: call.method,
    path: withQuery(call.path, filled.query),
    headers: {
      accept: 'application/json',
      ...call.fixedHeaders,
      ...(body !== undefined && { 'content-type': contentTypes[format] }),
      ...(sendCredential && credentialHeaders(credential, backEnd)),
      ...withLowerNames(filled.headers)
    },
    ...(body !== undefined && { body: writeBody(filled.body ?? {}, format) }),
    timeoutMs,
    maxBytes: maxResponseBytes,
    recorded: trail && { trail, purpose }
  })
}

/** The session's credential in the form that this upstream takes. */
function credentialHeaders(
  { token, cookies }: Credential,
  { credentialStyle, credentialScheme }: BackEnd
): Texts {
  const defaultStyle = token === undefined ? 'cookies' : 'bearer'
  const style = credentialStyle === 'none' ? defaultStyle : credentialStyle
  const name = style === 'bearer' ? 'authorization' : style.slice('header:'.length)
  const scheme = credentialScheme ?? (style === 'bearer' ? 'Bearer' : '')
  return {
    ...(style !== 'cookies' && token !== undefined && { [name]: `${scheme} ${token}`.trimStart() }),
    ...(cookies !== undefined && { cookie: cookies })
  }
}

export function writeBody(body: object, format: 'json' | 'form'): string {
  if (format === 'json') return JSON.stringify(body)
  return new URLSearchParams(
    Object.entries(body).map(([name, value]): [string, string] => [
      name,
      typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
    ])
  ).toString()
}

/** A path of config has no query of its own. */
function withQuery(path: string, query: Texts): string {
  const written = new URLSearchParams(query).toString()
  return written === '' ? path : `${path}?${written}`
}

/** Puts values into the `{name}`s of a template, at any depth. */
export function fill<T>(template: T, values: Texts): T
export function fill(template: unknown, values: Texts): unknown {
  if (typeof template === 'string') return fillText(template, values)
  if (Array.isArray(template)) return template.map(each => fill(each, values) as unknown)
  if (typeof template === 'object' && template !== null) {
    return Object.fromEntries(
      Object.entries(template).map(([key, value]) => [key, fill(value, values)])
    )
  }
  return template
}

function fillText(template: string, values: Texts): string {
  // A function as replacement: a password may contain "$&", which a string would interpret.
  return template.replace(/\{(\w+)\}/g, (whole, name: string) =>
    Object.hasOwn(values, name) ? (values[name] ?? '') : whole
  )
}
