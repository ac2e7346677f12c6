/** A call of sign-in to its back-end: body, query and headers as config writes them. */
import { credentialOf, tokenHeaderOf, type UpstreamConfig } from '../config/schema/routes.ts'
import type { AttemptPurpose, Trail } from '../observability/trail.ts'
import { csrfHeader } from '../proxy/request-headers.ts'
import type { WholeResponse } from '../proxy/response.ts'
import { fetchWhole, type Upstream } from '../proxy/upstream.ts'
import type { Credential } from '../session/types.ts'
import { headerSafe, maxResponseBytes } from './login-response.ts'

type Texts = Readonly<Record<string, string>>

export type BackEnd = Pick<Upstream, 'base' | 'send'> & {
  readonly config: Pick<UpstreamConfig, 'credential'>
}

interface Call {
  readonly path: string
  readonly method: string
  readonly query?: Texts | undefined
  readonly format?: Format | undefined
  readonly body?: object | undefined
  readonly fixedHeaders?: Texts
  readonly headers?: Texts
  /** 10 seconds without it. */
  readonly timeoutMs?: number
  readonly purpose: AttemptPurpose
  readonly trail: Trail | undefined
}

const contentTypes = {
  json: 'application/json',
  form: 'application/x-www-form-urlencoded'
} as const

type Format = keyof typeof contentTypes

export function ask(backEnd: BackEnd, call: Call, credential?: Credential): Promise<WholeResponse> {
  const { method, path, query, format = 'json', body, headers, purpose, trail } = call
  const search = new URLSearchParams(query).toString()
  return fetchWhole(backEnd, {
    method,
    // A path of config has no query of its own.
    path: search === '' ? path : `${path}?${search}`,
    headers: {
      accept: 'application/json',
      ...(body !== undefined && { 'content-type': contentTypes[format] }),
      ...call.fixedHeaders,
      ...(credential && credentialHeaders(credential, backEnd.config)),
      // With lower names: one must replace, and not stand beside, one in another case.
      ...Object.fromEntries(new Headers(headers))
    },
    ...(body !== undefined && { body: writeBody(body, format) }),
    timeoutMs: call.timeoutMs ?? 10_000,
    maxBytes: maxResponseBytes,
    recorded: trail && { trail, purpose }
  })
}

/** @throws GatewayError `upstream.invalid` for a token that no header can hold */
export function callWith(
  backEnd: BackEnd,
  { sendCredential = true, ...call }: Call & { readonly sendCredential?: boolean },
  credential: Credential
): Promise<WholeResponse> {
  const { token = '', refreshToken = '' } = credential
  const { body, query, headers = {} } = call
  const filled = fill({ body, query, headers }, { token, refreshToken })
  for (const value of Object.values(filled.headers)) headerSafe(value)
  return ask(backEnd, { ...call, ...filled }, sendCredential ? credential : undefined)
}

export function credentialHeaders(credential: Credential, config: BackEnd['config']): Texts {
  const { token, cookies } = credential
  const { as, scheme, csrf } = credentialOf(config.credential)
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
