/** The parts of the console's sign-in that its back-end gets too, by the names of config. */
import type { UpstreamLoginConfig } from '../config/schema/upstream-login.ts'
import { GatewayError } from '../errors/errors.ts'
import type { ConsoleRequest } from './credential-source.ts'

export interface PassedOn {
  readonly headers: Readonly<Record<string, string>>
  /** A `Cookie` header's value; empty without any. */
  readonly cookies: string
}

type Names = Pick<UpstreamLoginConfig, 'upstream' | 'passHeaders' | 'passCookies'>

/** Of one header or cookie. */
const maxLength = 1024

/** @throws GatewayError `request.malformed` for what is too long, or no text */
export function passedOn(names: Names, request: ConsoleRequest | undefined): PassedOn {
  const { upstream, passHeaders, passCookies } = names
  const cookies = passCookies.map(name =>
    bounded(`cookie "${name}"`, request?.cookie(upstream, name) ?? '')
  )
  const sent = request?.headers ?? {}
  const present = passHeaders.filter(name => Object.hasOwn(sent, name) && sent[name] !== undefined)
  return {
    headers: Object.fromEntries(
      present.map(name => [name, bounded(`header "${name}"`, sent[name])])
    ),
    cookies: cookies.filter(cookie => cookie !== '').join('; ')
  }
}

function bounded(what: string, value: unknown): string {
  if (typeof value === 'string' && value.length <= maxLength) return value
  const message = `The ${what} of the sign-in must be one text of at most ${maxLength} characters.`
  throw new GatewayError('request.malformed', { message })
}
