/** A back-end's response, read by the paths that config names. */
import type { AnswerTest, OutcomeTest } from '../config/schema/response-tests.ts'
import type { UpstreamLoginConfig } from '../config/schema/upstream-login.ts'
import { tryJson } from '../json/body.ts'
import { isRawNumber, isRecord, type JsonRecord } from '../json/values.ts'
import { invalid, type WholeResponse } from '../proxy/response.ts'
import { cookieName } from '../session/cookie-header.ts'
import type { Credential, Identity } from '../session/types.ts'
import type { Refusal } from './credential-source.ts'

export const maxResponseBytes = 256 * 1024

interface TokenPlaces {
  readonly token?: UpstreamLoginConfig['token']
  readonly expires?: UpstreamLoginConfig['expires'] | undefined
}

type ResponseConfig = Pick<UpstreamLoginConfig, 'outcomes'> & Partial<UpstreamLoginConfig>

export class LoginResponse {
  readonly #config: ResponseConfig
  readonly #raw: WholeResponse
  readonly #content: unknown

  constructor(config: ResponseConfig, raw: WholeResponse) {
    this.#config = config
    this.#raw = raw
    const { body, headers } = raw
    // Some back-ends name a wrong charset; a wrongly decoded name must not refuse the sign-in. What is
    // not JSON has no members, unless it is a token: the tests of config decide by the status alone.
    this.#content =
      tryJson(body, headers, maxResponseBytes) ??
      tryJson(body, {}, maxResponseBytes) ??
      (config.token === '.' ? body.toString('utf8').trim() : this.#tokenInHeader(config.token))
  }

  matches(test: AnswerTest): boolean {
    return matchesTest(test, this.#raw, this.#content)
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

  /** @throws GatewayError `upstream.invalid` for a response without an id */
  identity(user: UpstreamLoginConfig['user'], typed: string): Identity {
    const told = userFrom(user, path => this.#valuesAt(path), typed)
    if (told === undefined) throw invalid(`the sign-in response has no "${user.id}"`)
    const [profile] = this.#valuesAt(user.profile)
    if (!isWritable(profile)) throw invalid(`"${user.profile}" is nested too deeply`)
    return { ...told, profile: isRecord(profile) ? { ...profile } : {} }
  }

  /** What is not told stays. @throws GatewayError `upstream.invalid` without a token of config */
  credential(former: Credential, { token: path, expires }: TokenPlaces = this.#config): Credential {
    const token = typeof path === 'object' ? this.#tokenInHeader(path) : this.#textAt(path)
    if (path !== undefined && token === undefined) {
      throw invalid(`the response (status ${this.#raw.status}) has no ${JSON.stringify(path)}`)
    }
    const refreshToken = this.#textAt(this.#config.refreshToken) ?? former.refreshToken
    const expiresAt = expires && expiryOf(this.#valuesAt(expires.path)[0], expires.as)
    return {
      ...(token !== undefined && { token: headerSafe(token) }),
      ...(refreshToken !== undefined && { refreshToken }),
      ...(expiresAt !== undefined && { expiresAt }),
      ...this.cookies(former)
    }
  }

  #tokenInHeader(place: TokenPlaces['token']): string | undefined {
    return typeof place === 'object' ? tokenIn(this.#raw.headers, place.header) : undefined
  }

  cookies({ cookies: former = '' }: Credential): Pick<Credential, 'cookies'> {
    const setCookie = this.#raw.headers['set-cookie']
    const cookies = cookiesAfter(former, setCookie, this.#config.cookies ?? [])
    return cookies === '' ? {} : { cookies: headerSafe(cookies) }
  }

  #valuesAt(path: string | undefined): unknown[] {
    if (path === undefined) return []
    return path === '.' ? [this.#content] : valuesAt(this.#content, path.split('.'))
  }

  #textAt(path: string | undefined): string | undefined {
    return textsOf(this.#valuesAt(path))[0]
  }
}

/** Without its scheme, which `credential` of the upstream adds (RFC 9110 §11.4). */
export function tokenIn(
  headers: WholeResponse['headers'],
  name: string | undefined
): string | undefined {
  const value = name === undefined ? undefined : headers[name]
  const token = typeof value === 'string' ? value.trim().split(' ').at(-1) : undefined
  return token === '' ? undefined : token
}

type Places = Readonly<Partial<Record<'id' | 'username' | 'name' | 'roles', string>>>

/** Undefined without an id. @param typed in the form, in place of a user name; else the id is it */
export function userFrom(
  user: Places & { readonly roleMap: Readonly<Record<string, string>> },
  read: (path: string | undefined) => unknown[],
  typed?: string
) {
  const [id] = textsOf(read(user.id))
  if (id === undefined) return undefined
  const [username = typed ?? id] = textsOf(read(user.username))
  const [name = username] = textsOf(read(user.name))
  const roleMap = new Map(Object.entries(user.roleMap))
  // Zitadel has them as the names of an object.
  const told = read(user.roles).flatMap(each => (isRecord(each) ? Object.keys(each) : each))
  const roles = textsOf(told).map(role => roleMap.get(role) ?? role)
  return { id, username, name, roles }
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

/** Ids, names or tokens: strings that are not empty, and numbers. */
function textsOf(values: readonly unknown[]): string[] {
  const scalars = values.map(plain).filter(each => ['string', 'number'].includes(typeof each))
  return scalars.map(String).filter(each => each !== '')
}

/** The `Cookie` header after a response. Of other names, and what is deleted, nothing is taken. */
export function cookiesAfter(
  before: string,
  setCookie: string | string[] | undefined,
  names: readonly string[]
): string {
  const isNamed = (pair: string) => names.includes(cookieName(pair))
  const former = before === '' ? [] : before.split('; ').filter(isNamed)
  const set = [setCookie ?? []].flat().filter(each => !deletes(each))
  const pairs = set.map(each => each.split(';', 1)[0] ?? '').filter(isNamed)
  const byName = new Map(pairs.map(pair => [cookieName(pair), pair]))
  return [...former.filter(pair => !byName.has(cookieName(pair))), ...byName.values()].join('; ')
}

/** By `Max-Age`, or without it by `Expires`, as Express and ASP.NET do. */
function deletes(setCookie: string): boolean {
  const [, age] = /; *max-age *= *(-?\d+)/i.exec(setCookie) ?? []
  const [, expires = ''] = /; *expires *=([^;]*)/i.exec(setCookie) ?? []
  return age === undefined ? Date.parse(expires) <= Date.now() : Number(age) <= 0
}

/**
 * A list stands for each of its items, or where a number follows, for one; a JSON Web Token for its
 * claims. Names may have dots themselves, as those of Auth0, ASP.NET, and clients of Keycloak.
 */
export function valuesAt(content: unknown, path: readonly string[]): unknown[] {
  const [name] = path
  if (name === undefined) return [content]
  if (Array.isArray(content) && !/^\d+$/.test(name)) {
    return content.flatMap(each => (Array.isArray(each) ? [] : valuesAt(each, path)))
  }
  const holder = typeof content === 'string' ? claimsOf(content) : content
  if (!isRecord(holder) && !Array.isArray(holder)) return []
  for (let length = path.length; length > 0; length--) {
    const key = path.slice(0, length).join('.')
    if (!Object.hasOwn(holder, key)) continue
    return valuesAt((holder as JsonRecord)[key], path.slice(length))
  }
  return []
}

/** Undefined for what is none. The back-end itself gave it: its signature tells no more. */
export function claimsOf(token: string): unknown {
  const [, claims = '', signature] = token.split('.')
  const bytes = Buffer.from(signature === undefined ? '' : claims, 'base64url')
  return tryJson(bytes, {}, maxResponseBytes)
}

export function matchesTest(
  test: AnswerTest,
  { status, headers }: Pick<WholeResponse, 'status' | 'headers'>,
  content?: unknown
): boolean {
  if (test.status !== undefined && !test.status.includes(status)) return false
  const leadsTo = (start: string) => placeIn(headers)?.startsWith(start) === true
  if (test.location?.some(leadsTo) === false) return false
  if (test.path === undefined) return true
  return valuesAt(content, test.path.split('.')).some(value => fits(test, plain(value)))
}

/** Path and query of a redirect's `Location`. */
export function placeIn({ location }: WholeResponse['headers']): string | undefined {
  if (typeof location !== 'string' || !URL.canParse(location, 'http://upstream')) return undefined
  const { pathname, search } = new URL(location, 'http://upstream')
  return pathname + search
}

/** Whether a value is one that a test names; without any it must be there. */
function fits({ in: values, startsWith }: AnswerTest, value: unknown): boolean {
  if (values === undefined && startsWith === undefined) {
    return value !== null && value !== undefined && value !== false
  }
  if (values?.includes(value as string | number | boolean) === true) return true
  return typeof value === 'string' && startsWith?.some(start => value.startsWith(start)) === true
}

/** A number that a double cannot hold becomes its digits, so that two ids never become equal. */
function plain(value: unknown): unknown {
  return isRawNumber(value) ? value.rawJSON : value
}

const maxRead = 4000
const maxShown = 200

/** The first text, as one line. Undefined for markup: consoles may show a message as HTML. */
export function plainMessage(values: readonly unknown[]): string | undefined {
  const text = values.find(value => typeof value === 'string')
  if (text === undefined) return undefined
  // Controls, marks of direction, and unpaired surrogates are characters of the class C.
  const line = text
    .slice(0, maxRead)
    .replace(/[\p{C}\p{Z}]+/gu, ' ')
    .trim()
  if (line === '' || /<[a-z!/?]/i.test(line)) return undefined
  return line.slice(0, maxShown).toWellFormed()
}
