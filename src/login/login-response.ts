/** A back-end's response, read by the paths that config names. */
import type { AnswerTest, OutcomeTest } from '../config/schema/response-tests.ts'
import type { UpstreamLoginConfig } from '../config/schema/upstream-login.ts'
import { GatewayError } from '../errors/errors.ts'
import { readJson } from '../json/body.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { isRecord } from '../json/values.ts'
import type { Credential, Identity } from '../session/types.ts'
import { cookiesAfter } from './credential-cookies.ts'
import type { Refusal } from './credential-source.ts'
import { matchesTest, plain, plainMessage, valuesAt } from './response-values.ts'

export interface RawResponse {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: Buffer
}

export const maxResponseBytes = 256 * 1024

interface Places {
  readonly token?: UpstreamLoginConfig['token']
  readonly expires?: UpstreamLoginConfig['expires'] | undefined
}

type ResponseConfig = Pick<UpstreamLoginConfig, 'outcomes'> & Partial<UpstreamLoginConfig>

export class LoginResponse {
  readonly #config: ResponseConfig
  readonly #status: number
  readonly #headers: RawResponse['headers']
  readonly #content: unknown

  constructor(config: ResponseConfig, { status, headers, body }: RawResponse) {
    this.#config = config
    this.#status = status
    this.#headers = headers
    this.#content = readContent(body, headers)
  }

  matches(test: AnswerTest): boolean {
    return matchesTest(test, this.#status, this.#content)
  }

  outcome(): OutcomeTest['is'] | undefined {
    return this.#config.outcomes.find(test => this.matches(test))?.is
  }

  refusal(is: Exclude<OutcomeTest['is'], 'success'>): Refusal {
    const message = plainMessage(this.#valuesAt(this.#config.message))
    return {
      vouched: false,
      ...(is !== 'refused' && { kind: is, isFinal: is !== 'challenge' }),
      ...(message !== undefined && { message })
    }
  }

  /**
   * @param typed in the form, for a response without a user name
   * @throws GatewayError `upstream.invalid` for a response without an id
   */
  identity(user: UpstreamLoginConfig['user'], typed: string): Identity {
    const id = this.#textAt(user.id)
    if (id === undefined) throw invalid(`the sign-in response has no "${user.id}"`)
    const username = this.#textAt(user.username) ?? typed
    const roles = this.#valuesAt(user.roles)
      .flat()
      .map(text)
      .filter(role => role !== undefined)
    const [profile] = this.#valuesAt(user.profile)
    if (!isWritable(profile)) throw invalid(`"${user.profile}" is nested too deeply`)
    return {
      id,
      username,
      name: this.#textAt(user.name) ?? username,
      roles: roles.map(
        role => (Object.hasOwn(user.roleMap, role) ? user.roleMap[role] : undefined) ?? role
      ),
      profile: isRecord(profile) ? { ...profile } : {}
    }
  }

  /** What is not told stays. @throws GatewayError `upstream.invalid` without a token of config */
  credential(former: Credential, { token: path, expires }: Places = this.#config): Credential {
    const token = typeof path === 'object' ? this.#tokenIn(path.header) : this.#textAt(path)
    if (path !== undefined && token === undefined) {
      throw invalid(`the response (status ${this.#status}) has no ${JSON.stringify(path)}`)
    }
    const refreshToken = this.#textAt(this.#config.refreshToken) ?? former.refreshToken
    const expiresAt = expires && expiryOf(this.#valuesAt(expires.path)[0], expires.as)
    const setCookie = this.#headers['set-cookie']
    const cookies = cookiesAfter(former.cookies ?? '', setCookie, this.#config.cookies ?? [])
    return {
      ...(token !== undefined && { token: headerSafe(token) }),
      ...(refreshToken !== undefined && { refreshToken }),
      ...(expiresAt !== undefined && { expiresAt }),
      ...(cookies !== '' && { cookies: headerSafe(cookies) })
    }
  }

  #valuesAt(path: string | undefined): unknown[] {
    return path === undefined ? [] : valuesAt(this.#content, path.split('.'))
  }

  #textAt(path: string | undefined): string | undefined {
    return this.#valuesAt(path)
      .map(text)
      .find(value => value !== undefined)
  }

  /** Without its scheme, which `credential` of the upstream adds (RFC 9110 §11.4). */
  #tokenIn(header: string): string | undefined {
    const value = this.#headers[header]
    const token = typeof value === 'string' ? value.trim().split(' ').at(-1) : undefined
    return token === '' ? undefined : token
  }
}

export function invalid(reason: string): GatewayError {
  return new GatewayError('upstream.invalid', { cause: new Error(reason) })
}

/** @throws GatewayError `upstream.invalid` for text that cannot be sent in a header */
export function headerSafe(value: string): string {
  if (!/[^\x20-\x7e]/.test(value)) return value
  throw invalid('the credential has characters that no HTTP header can hold')
}

type ExpiryKind = NonNullable<UpstreamLoginConfig['expires']>['as']

/** A date of zero without a time zone is that of the back-end: up to 14 hours after midnight. */
const endOf1970 = Date.UTC(1971, 0)

/**
 * In milliseconds since the epoch. An empty text, a negative number and the year 1970 are how
 * back-ends say that a token does not expire; one that lasts for 0 seconds is due at once.
 */
function expiryOf(value: unknown, kind: ExpiryKind): number | undefined {
  const written = String(plain(value)).trim()
  const amount = kind === 'date' ? Date.parse(written) : Number(written === '' ? NaN : written)
  const factor = kind.endsWith('seconds') && !kind.endsWith('milliseconds') ? 1000 : 1
  const isAbsolute = kind === 'date' || kind.startsWith('epoch')
  const end = amount * factor + (isAbsolute ? 0 : Date.now())
  const hasEnd = isAbsolute ? end >= endOf1970 : amount >= 0
  return hasEnd && Number.isFinite(end) ? end : undefined
}

export function isWritable(value: unknown): boolean {
  try {
    JSON.stringify(value)
    return true
  } catch {
    return false
  }
}

/** An id, a name or a token: a string that is not empty, or a number. */
function text(value: unknown): string | undefined {
  const scalar = plain(value)
  if (typeof scalar === 'number') return String(scalar)
  return typeof scalar === 'string' && scalar !== '' ? scalar : undefined
}

/** A body that is not JSON has no members: the tests of config decide by the status alone. */
function readContent(body: Buffer, headers: RawResponse['headers']): unknown {
  try {
    return readJson(body, headers, maxResponseBytes)
  } catch {}
  // Some back-ends name a wrong charset; a wrongly decoded name must not refuse the sign-in.
  try {
    return parseKeepingDigits(body.toString('utf8'))
  } catch {
    return null
  }
}
