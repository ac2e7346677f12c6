/** A call of sign-in to its back-end: body, query and headers as config writes them. */
import { type credentialOf, tokenHeaderOf } from '../config/schema/routes.ts'
import type { CsrfConfig } from '../config/schema/upstreams.ts'
import type { AttemptPurpose, Recorded, Trail } from '../observability/trail.ts'
import { cookieText, decodedCookie } from '../session/cookie-header.ts'
import type { Credential } from '../session/types.ts'
import { headerSafe, maxResponseBytes, type RawResponse } from './login-response.ts'

type Texts = Readonly<Record<string, string>>

/** Passed in, since login does not import proxy. */
export type Send = (options: {
  method: string
  path: string
  headers: Record<string, string>
  body?: string
  timeoutMs: number
  maxBytes: number
  recorded?: Recorded | undefined
}) => Promise<RawResponse>

export interface BackEnd {
  readonly send: Send
  readonly credential: CredentialForm
}

/** How it takes credentials; without `scheme`: `Bearer` for `bearer`, none for a header. */
export type CredentialForm = Pick<ReturnType<typeof credentialOf>, 'as' | 'scheme' | 'csrf'>

interface Call {
  readonly path: string
  readonly method: string
  readonly query?: Texts | undefined
  readonly format?: Format | undefined
  readonly body?: object | undefined
  readonly headers?: Texts
  readonly timeoutMs: number
  readonly purpose: AttemptPurpose
  readonly trail: Trail | undefined
}

interface SessionCall extends Call {
  readonly fixedHeaders?: Texts
  readonly sendCredential?: boolean
}

const contentTypes = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded'
} as const

type Format = keyof typeof contentTypes

/** A header must replace one of the same name in another case, and not stand beside it. */
export function withLowerNames(headers: Texts): Record<string, string> {
  const pairs = Object.entries(headers)
  return Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value]))
}

export function ask({ send }: Pick<BackEnd, 'send'>, call: Call): Promise<RawResponse> {
  const { method, path, query, format = 'json', body, headers, timeoutMs, purpose, trail } = call
  const search = new URLSearchParams(query).toString()
  return send({
    method,
    // A path of config has no query of its own.
    path: search === '' ? path : `${path}?${search}`,
    headers: {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': contentTypes[format] }),
      ...headers
    },
    ...(body !== undefined && { body: writeBody(body, format) }),
    timeoutMs,
    maxBytes: maxResponseBytes,
    recorded: trail && { trail, purpose }
  })
}

/** @throws GatewayError `upstream.invalid` for a token that no header can hold */
export function callWith(
  backEnd: BackEnd,
  { fixedHeaders, sendCredential = true, ...call }: SessionCall,
  credential: Credential
): Promise<RawResponse> {
  const { token = '', refreshToken = '' } = credential
  const { body, query, headers = {} } = call
  const filled = fill({ body, query, headers }, { token, refreshToken })
  for (const value of Object.values(filled.headers)) headerSafe(value)
  return ask(backEnd, {
    ...call,
    ...filled,
    headers: {
      ...fixedHeaders,
      ...(sendCredential && credentialHeaders(credential, backEnd.credential)),
      ...withLowerNames(filled.headers)
    }
  })
}

export function credentialHeaders(
  credential: Credential,
  { as, scheme, csrf }: CredentialForm
): Texts {
  const { token, cookies } = credential
  const defaultStyle = token === undefined ? 'cookies' : 'bearer'
  const style = as === 'none' ? defaultStyle : as
  const name = tokenHeaderOf(style)
  const word = scheme ?? (style === 'bearer' ? 'Bearer' : '')
  return {
    ...(name !== undefined && token !== undefined && { [name]: `${word} ${token}`.trimStart() }),
    ...(cookies !== undefined && { cookie: cookies }),
    ...(csrf !== undefined && csrfHeader(credential, csrf))
  }
}

/** Decoded, as scripts of browsers send it. */
export function csrfHeader({ token, cookies = '' }: Credential, csrf: CsrfConfig): Texts {
  const { header, cookie } = csrf
  const value = cookie === undefined ? token : decodedCookie(cookieText(cookies, cookie) ?? '')
  return value === undefined || !/^[\x20-\x7e]+$/.test(value) ? {} : { [header]: value }
}

function writeBody(body: object, format: Format): string {
  if (format === 'json') return JSON.stringify(body)
  const members = Object.entries(body).map(([name, value]): [string, string] => [
    name,
    typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
  ])
  return new URLSearchParams(members).toString()
}

/** Puts values into the `{name}`s of a template, at any depth. */
export function fill<T>(template: T, values: Texts): T
export function fill(template: unknown, values: Texts): unknown {
  if (typeof template === 'string') {
    // A function as replacement: a password may contain "$&", which a string would interpret.
    return template.replace(/\{(\w+)\}/g, (whole, name: string) =>
      Object.hasOwn(values, name) ? (values[name] ?? '') : whole
    )
  }
  if (Array.isArray(template)) return template.map(each => fill(each, values) as unknown)
  if (typeof template === 'object' && template !== null) {
    return Object.fromEntries(
      Object.entries(template).map(([key, value]) => [key, fill(value, values)])
    )
  }
  return template
}
