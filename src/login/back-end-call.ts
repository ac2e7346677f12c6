/** A call of sign-in to its back-end: body, query and headers as config writes them. */
import type { Recorded } from '../observability/trail.ts'
import type { Credential } from '../session/types.ts'
import { headerSafe, maxResponseBytes, type RawResponse } from './login-response.ts'

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

/** The form in which an upstream takes credentials. */
export interface CredentialForm {
  /** `none`, `bearer`, `cookies` or `header:NAME`. */
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
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly sendCredential?: boolean
}

export interface CallContext extends CredentialForm {
  readonly send: Send
  readonly timeoutMs: number
  readonly recorded?: Recorded | undefined
  /** Headers that are no templates. */
  readonly headers?: Readonly<Record<string, string>>
}

export const contentTypes = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded'
} as const

/** A header must replace one of the same name in another case, and not stand beside it. */
export function withLowerNames(headers: Readonly<Record<string, string>>): Record<string, string> {
  const pairs = Object.entries(headers)
  return Object.fromEntries(pairs.map(([name, value]) => [name.toLowerCase(), value]))
}

/** @throws GatewayError `upstream.invalid` for a token that no header can hold */
export function callWith(
  { send, timeoutMs, recorded, headers: fixedHeaders, ...form }: CallContext,
  call: SessionCall,
  credential: Credential
): Promise<RawResponse> {
  const { token = '', refreshToken = '' } = credential
  const values = { token, refreshToken }
  const { format = 'json', body, sendCredential = true } = call
  const filled = Object.entries(call.headers ?? {}).map(([name, template]) => [
    name,
    headerSafe(fillText(template, values))
  ])
  return send({
    method: call.method,
    path: withQuery(call.path, fillPairs(call.query ?? {}, values)),
    headers: {
      accept: 'application/json',
      ...fixedHeaders,
      ...(body !== undefined && { 'content-type': contentTypes[format] }),
      ...(sendCredential && credentialHeaders(credential, form)),
      ...withLowerNames(Object.fromEntries(filled) as Record<string, string>)
    },
    ...(body !== undefined && { body: writeBody(fill(body, values) as object, format) }),
    timeoutMs,
    maxBytes: maxResponseBytes,
    recorded
  })
}

/** The session's credential in the form that this upstream takes. */
function credentialHeaders(
  { token, cookies }: Credential,
  { credentialStyle, credentialScheme }: CredentialForm
): Record<string, string> {
  const defaultStyle = token === undefined ? 'cookies' : 'bearer'
  const style = credentialStyle === 'none' ? defaultStyle : credentialStyle
  const name = style === 'bearer' ? 'authorization' : style.slice('header:'.length)
  const scheme = credentialScheme ?? (style === 'bearer' ? 'Bearer' : '')
  const written = scheme === '' ? token : `${scheme} ${token ?? ''}`
  return {
    ...(style !== 'cookies' && token !== undefined && { [name]: written ?? '' }),
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
export function withQuery(path: string, members: ReadonlyArray<[string, string]>): string {
  return members.length === 0 ? path : `${path}?${new URLSearchParams(members).toString()}`
}

function fillPairs(
  templates: Readonly<Record<string, string>>,
  values: Readonly<Record<string, string>>
): Array<[string, string]> {
  return Object.entries(templates).map(([name, template]) => [name, fillText(template, values)])
}

/** Puts values into the `{name}`s of a template, at any depth. */
export function fill(template: unknown, values: Readonly<Record<string, string>>): unknown {
  if (typeof template === 'string') return fillText(template, values)
  if (Array.isArray(template)) return template.map(each => fill(each, values))
  if (typeof template === 'object' && template !== null) {
    return Object.fromEntries(
      Object.entries(template).map(([key, value]) => [key, fill(value, values)])
    )
  }
  return template
}

function fillText(template: string, values: Readonly<Record<string, string>>): string {
  // A function as replacement: a password may contain "$&", which a string would interpret.
  return template.replace(/\{(\w+)\}/g, (whole, name: string) =>
    Object.hasOwn(values, name) ? (values[name] ?? '') : whole
  )
}
