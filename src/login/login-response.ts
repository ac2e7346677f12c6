/** A back-end's response to a sign-in or a renewal, read by the paths that config names. */
import type { AnswerTest, UpstreamLoginConfig } from '../config/schema/upstream-login.ts'
import { GatewayError } from '../errors.ts'
import { readJson } from '../json/body.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { isRawNumber, isRecord, valueAt } from '../json/values.ts'
import type { Credential, Identity } from '../session/record.ts'

export interface RawResponse {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: Buffer
}

export const maxResponseBytes = 256 * 1024

export class LoginResponse {
  readonly #config: UpstreamLoginConfig
  readonly #status: number
  readonly #headers: RawResponse['headers']
  readonly #content: unknown

  constructor(config: UpstreamLoginConfig, { status, headers, body }: RawResponse) {
    this.#config = config
    this.#status = status
    this.#headers = headers
    this.#content = readContent(body, headers)
  }

  matches(test: AnswerTest): boolean {
    if (test.status !== undefined && !test.status.includes(this.#status)) return false
    if (test.path === undefined) return true
    const value = this.#valueAt(test.path)
    if (test.in !== undefined) return test.in.includes(plain(value) as string | number | boolean)
    return value !== null && value !== undefined && value !== false
  }

  /**
   * @param typed the user name of the sign-in form, for a response without one
   * @throws GatewayError `upstream.invalid` for a response without an id
   */
  identity(typed: string): Identity {
    const { user } = this.#config
    const id = this.#textAt(user.id)
    if (id === undefined) throw invalid(`the sign-in response has no "${user.id}"`)
    const username = this.#textAt(user.username) ?? typed
    const roles = [this.#valueAt(user.roles)]
      .flat()
      .map(text)
      .filter(role => role !== undefined)
    const profile = this.#valueAt(user.profile)
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

  /** @throws GatewayError `upstream.invalid` where config names a token that is not there */
  credential(): Credential {
    const { token: tokenPath, refreshToken, expires } = this.#config
    const token = headerSafe(this.#textAt(tokenPath))
    const cookies = this.#cookies()
    if (tokenPath !== undefined && token === undefined) {
      throw invalid(`the sign-in response has no "${tokenPath}"`)
    }
    return credentialOf({
      token,
      refreshToken: this.#textAt(refreshToken),
      expiresAt: this.#expiryAt(expires),
      cookies
    })
  }

  /**
   * The credential after a renewal; members that the response does not have stay as in `old`.
   * @throws GatewayError `upstream.invalid` for a response without a token
   */
  renewedCredential(
    refresh: NonNullable<UpstreamLoginConfig['refresh']>,
    old: Credential
  ): Credential {
    const isSuccess = this.#status >= 200 && this.#status < 300
    const token = isSuccess ? headerSafe(this.#textAt(refresh.token)) : undefined
    if (token === undefined) {
      throw invalid(`the renewal response (status ${this.#status}) has no "${refresh.token}"`)
    }
    return credentialOf({
      token,
      refreshToken: this.#textAt(this.#config.refreshToken) ?? old.refreshToken,
      expiresAt: this.#expiryAt(refresh.expires ?? this.#config.expires),
      cookies: this.#cookies() ?? old.cookies
    })
  }

  #valueAt(path: string | undefined): unknown {
    return path === undefined ? undefined : valueAt(this.#content, path.split('.'))
  }

  #textAt(path: string | undefined): string | undefined {
    return text(this.#valueAt(path))
  }

  #expiryAt(expires: UpstreamLoginConfig['expires']): number | undefined {
    return expires === undefined ? undefined : expiryOf(this.#valueAt(expires.path), expires.as)
  }

  #cookies(): string | undefined {
    const cookies = cookiesIn(this.#headers['set-cookie'], this.#config.cookies)
    return cookies.length === 0 ? undefined : headerSafe(cookies.join('; '))
  }
}

export function invalid(reason: string): GatewayError {
  return new GatewayError('upstream.invalid', { cause: new Error(reason) })
}

/** @throws GatewayError `upstream.invalid` for text that cannot be sent in a header */
function headerSafe<T extends string | undefined>(value: T): T {
  if (value !== undefined && /[^\x20-\x7e]/.test(value)) {
    throw invalid('the credential has characters that no HTTP header can hold')
  }
  return value
}

function credentialOf(parts: {
  readonly [Name in keyof Credential]-?: Credential[Name] | undefined
}): Credential {
  const { token, refreshToken, expiresAt, cookies } = parts
  return {
    ...(token !== undefined && { token }),
    ...(refreshToken !== undefined && { refreshToken }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(cookies !== undefined && { cookies })
  }
}

type ExpiryKind = NonNullable<UpstreamLoginConfig['expires']>['as']

/** The end of a token in milliseconds since the epoch; undefined for a value that is no time. */
function expiryOf(value: unknown, kind: ExpiryKind): number | undefined {
  const time = plain(value)
  const amount = kind === 'date' ? Date.parse(String(time)) : Number(time ?? NaN)
  const factor = kind.endsWith('seconds') && !kind.endsWith('milliseconds') ? 1000 : 1
  const isAbsolute = kind === 'date' || kind.startsWith('epoch')
  const end = amount * factor + (isAbsolute ? 0 : Date.now())
  return Number.isFinite(end) ? end : undefined
}

/** A number that a double cannot hold becomes its digits, so that two ids never become equal. */
function plain(value: unknown): unknown {
  return isRawNumber(value) ? value.rawJSON : value
}

/** An id, a name or a token: a string that is not empty, or a number. */
function text(value: unknown): string | undefined {
  const scalar = plain(value)
  if (typeof scalar === 'number') return String(scalar)
  return typeof scalar === 'string' && scalar !== '' ? scalar : undefined
}

/** The `name=value` pairs of `Set-Cookie` headers that have one of these names. */
export function cookiesIn(
  setCookie: string | string[] | undefined,
  names: readonly string[]
): string[] {
  const pairs = [setCookie ?? []].flat().map(cookie => cookie.split(';', 1)[0] ?? '')
  return pairs.filter(pair => names.includes(pair.slice(0, Math.max(0, pair.indexOf('=')))))
}

/** A body that is not JSON has no members: the tests of config decide by the status alone. */
function readContent(body: Buffer, headers: RawResponse['headers']): unknown {
  try {
    return readJson(body, headers, maxResponseBytes)
  } catch {
    return readAsUtf8(body)
  }
}

/** Some back-ends name a wrong charset; a wrongly decoded name must not refuse the sign-in. */
function readAsUtf8(body: Buffer): unknown {
  try {
    return parseKeepingDigits(body.toString('utf8'))
  } catch {
    return null
  }
}
