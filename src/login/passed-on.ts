/** The parts of the console's sign-in that its back-end gets too, by the names of config. */
import type { UpstreamLoginConfig } from '../config/schema/upstream-login.ts'
import { GatewayError } from '../errors/errors.ts'
import type { ConsoleRequest } from './credential-source.ts'

export interface PassedOn {
  readonly headers: Readonly<Record<string, string>>
  readonly query: Readonly<Record<string, string>>
  /** A `Cookie` header's value; empty without any. */
  readonly cookies: string
}

type Names = Pick<UpstreamLoginConfig, 'upstream' | 'passHeaders' | 'passQuery' | 'passCookies'>

/** Of one header, member of the query, or cookie. */
const maxLength = 1024

/** @throws GatewayError `request.malformed` for what is too long, or no text */
export function passedOn(names: Names, request: ConsoleRequest | undefined): PassedOn {
  const { upstream, passHeaders, passQuery, passCookies } = names
  const cookies = passCookies.map(name =>
    bounded(`cookie "${name}"`, request?.cookie(upstream, name) ?? '')
  )
  return {
    headers: members('header', passHeaders, request?.headers),
    query: members('query member', passQuery, request?.query),
    cookies: cookies.filter(cookie => cookie !== '').join('; ')
  }
}

function members(
  what: string,
  names: readonly string[],
  values: Readonly<Record<string, unknown>> = {}
): Record<string, string> {
  const present = names.filter(name => Object.hasOwn(values, name) && values[name] !== undefined)
  return Object.fromEntries(present.map(name => [name, bounded(`${what} "${name}"`, values[name])]))
}

function bounded(what: string, value: unknown): string {
  const isText = typeof value === 'string' && value.length <= maxLength
  if (isText && !/[\0-\x08\x0a-\x1f\x7f]/.test(value)) return value
  const message = `The ${what} of the sign-in must be one text of at most ${maxLength} characters.`
  throw new GatewayError('request.malformed', { message })
}
