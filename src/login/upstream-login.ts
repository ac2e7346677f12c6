/**
 * Credential source: a back-end's own sign-in, told by config how to ask and how to read the
 * answer.
 */
import type { AnswerTest, UpstreamLoginConfig } from '../config/schema/upstream-login.ts'
import { GatewayError } from '../errors.ts'
import { readJson } from '../json/body.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { isRawNumber, isRecord } from '../json/values.ts'
import type { Credential, Identity, Session } from '../session/record.ts'
import type { Attempt, CredentialSource } from './credential-source.ts'

/** The way to the back-end, handed in: login and proxy do not know each other. */
export type Send = (options: {
  method: string
  path: string
  headers: Record<string, string>
  body?: string
  timeoutMs: number
  maxBytes: number
}) => Promise<{
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Buffer
}>

interface Options {
  /** Of the credential source. */
  readonly name: string
  readonly config: UpstreamLoginConfig
  readonly send: Send
  /** How this upstream wants the credential: `none`, `bearer`, `cookies` or `header:NAME`. */
  readonly credentialStyle: string
  readonly valueAt: (value: unknown, path: readonly string[]) => unknown
}

const maxAnswerBytes = 256 * 1024

type Headers = Awaited<ReturnType<Send>>['headers']

export function createUpstreamLogin(options: Options): CredentialSource {
  const { name, config, send, credentialStyle, valueAt } = options
  const at = (answer: unknown, path: string | undefined) =>
    path === undefined ? undefined : valueAt(answer, path.split('.'))

  const fits = (test: AnswerTest, status: number, answer: unknown) => {
    if (test.status !== undefined && !test.status.includes(status)) return false
    if (test.path === undefined) return true
    const found = at(answer, test.path)
    if (test.in !== undefined) return test.in.includes(plain(found) as string | number | boolean)
    return found !== null && found !== undefined && found !== false
  }

  const identityOf = (answer: unknown, typed: string): Identity => {
    const { user } = config
    const id = text(at(answer, user.id))
    if (id === undefined) {
      throw new GatewayError('upstream.invalid', {
        cause: new Error(`the sign-in answer has no "${user.id}"`)
      })
    }
    const username = text(at(answer, user.username)) ?? typed
    const roles = [at(answer, user.roles)]
      .flat()
      .map(text)
      .filter(role => role !== undefined)
    const profile = at(answer, user.profile)
    return {
      id,
      username,
      name: text(at(answer, user.name)) ?? username,
      roles: roles.map(
        role => (Object.hasOwn(user.roleMap, role) ? user.roleMap[role] : undefined) ?? role
      ),
      profile: isRecord(profile) ? { ...profile } : {}
    }
  }

  const credentialOf = (answer: unknown, headers: Headers): Credential => {
    const token = text(at(answer, config.token))
    const cookies = cookiesIn(headers['set-cookie'], config.cookies)
    if ([token ?? '', ...cookies].some(value => /[^\x20-\x7e]/.test(value))) {
      throw new GatewayError('upstream.invalid', {
        cause: new Error('the credential holds characters that no header field can')
      })
    }
    const refreshToken = text(at(answer, config.refreshToken))
    const expiresAt =
      config.expires === undefined
        ? undefined
        : endOf(at(answer, config.expires.path), config.expires.as)
    return {
      ...(token !== undefined && { token }),
      ...(refreshToken !== undefined && { refreshToken }),
      ...(expiresAt !== undefined && { expiresAt }),
      ...(cookies.length > 0 && { cookies: cookies.join('; ') })
    }
  }

  /** The old credential as this upstream wants it. */
  const credentialHeaders = ({ credential }: Session): Record<string, string> => {
    const { token, cookies } = credential ?? {}
    const defaultStyle = token === undefined ? 'cookies' : 'bearer'
    const style = credentialStyle === 'none' ? defaultStyle : credentialStyle
    return {
      ...(style === 'bearer' && token !== undefined && { authorization: `Bearer ${token}` }),
      ...(style.startsWith('header:') && token !== undefined && { [style.slice(7)]: token }),
      ...(cookies !== undefined && { cookie: cookies })
    }
  }

  /** A new credential, or undefined where the back-end refuses. */
  const renew = async (session: Session): Promise<Credential | undefined> => {
    const { refresh } = config
    const old = session.credential
    if (refresh === undefined || old === undefined) return undefined
    const { status, headers, body } = await send({
      method: refresh.method,
      path: refresh.path,
      headers: {
        accept: 'application/json',
        ...(refresh.method !== 'GET' && { 'content-type': 'application/json' }),
        ...credentialHeaders(session)
      },
      ...(refresh.method !== 'GET' && {
        body: JSON.stringify(
          fill(refresh.body, { token: old.token ?? '', refreshToken: old.refreshToken ?? '' })
        )
      }),
      timeoutMs: config.timeout,
      maxBytes: maxAnswerBytes
    })
    const answer = readAnswer(body, headers)
    if (fits(config.refused, status, answer)) return undefined
    const token = status >= 200 && status < 300 ? text(at(answer, refresh.token)) : undefined
    if (token === undefined) {
      throw new GatewayError('upstream.invalid', {
        cause: new Error(`the renewal answer (status ${status}) has no "${refresh.token}"`)
      })
    }
    const expires = refresh.expires ?? config.expires
    const expiresAt =
      expires === undefined ? undefined : endOf(at(answer, expires.path), expires.as)
    const refreshToken = text(at(answer, config.refreshToken)) ?? old.refreshToken
    const cookies = credentialOf({}, headers).cookies ?? old.cookies
    if (/[^\x20-\x7e]/.test(token)) {
      throw new GatewayError('upstream.invalid', {
        cause: new Error('the credential holds characters that no header field can')
      })
    }
    return {
      token,
      ...(refreshToken !== undefined && { refreshToken }),
      ...(expiresAt !== undefined && { expiresAt }),
      ...(cookies !== undefined && { cookies })
    }
  }

  return {
    name,
    ...(config.refresh !== undefined && { renewBeforeMs: config.refresh.before, renew }),

    async verify(attempt) {
      const { status, headers, body } = await send({
        method: 'POST',
        path: config.path,
        headers: {
          'accept': 'application/json',
          'content-type':
            config.format === 'json' ? 'application/json' : 'application/x-www-form-urlencoded',
          'x-forwarded-for': attempt.address,
          'x-request-id': attempt.requestId,
          ...config.headers
        },
        body: writeBody(config, attempt),
        timeoutMs: config.timeout,
        maxBytes: maxAnswerBytes
      })
      const answer = readAnswer(body, headers)
      if (fits(config.refused, status, answer)) return { vouched: false }
      if (!fits(config.success, status, answer)) {
        throw new GatewayError('upstream.invalid', {
          cause: new Error(
            `the sign-in answer (status ${status}) is neither a success nor a refusal`
          )
        })
      }
      const credential = credentialOf(answer, headers)
      if (config.token !== undefined && credential.token === undefined) {
        throw new GatewayError('upstream.invalid', {
          cause: new Error(`the sign-in answer has no "${config.token}"`)
        })
      }
      return { vouched: true, identity: identityOf(answer, attempt.username), credential }
    },

    async signOut(session: Session) {
      if (config.logout === undefined || session.credential === undefined) return
      const { status } = await send({
        method: config.logout.method,
        path: config.logout.path,
        headers: { accept: 'application/json', ...credentialHeaders(session) },
        timeoutMs: Math.min(config.timeout, 5000),
        maxBytes: maxAnswerBytes
      })
      if (status >= 400) {
        throw new GatewayError('upstream.error', {
          cause: new Error(`the sign-out was answered with status ${status}`)
        })
      }
    }
  }
}

/** Puts values into the `{name}`s of a template, at any depth. */
function fill(template: unknown, values: Readonly<Record<string, string>>): unknown {
  // A function as replacement: "$&" in a password is no pattern.
  if (typeof template === 'string') {
    return template.replace(/\{(\w+)\}/g, (whole, name: string) =>
      Object.hasOwn(values, name) ? (values[name] ?? '') : whole
    )
  }
  if (Array.isArray(template)) return template.map(each => fill(each, values))
  if (typeof template === 'object' && template !== null) {
    return Object.fromEntries(
      Object.entries(template).map(([key, value]) => [key, fill(value, values)])
    )
  }
  return template
}

type ExpiryKind = NonNullable<UpstreamLoginConfig['expires']>['as']

/** When a token ends; an answer that does not say so, or says nonsense, is taken as not saying. */
function endOf(value: unknown, kind: ExpiryKind): number | undefined {
  const said = plain(value)
  const written = kind === 'date' ? Date.parse(String(said)) : Number(said ?? NaN)
  const factor = kind.endsWith('seconds') && !kind.endsWith('milliseconds') ? 1000 : 1
  const isAbsolute = kind === 'date' || kind.startsWith('epoch')
  const end = written * factor + (isAbsolute ? 0 : Date.now())
  return Number.isFinite(end) ? end : undefined
}

function writeBody(config: UpstreamLoginConfig, { username, password, extra }: Attempt): string {
  const body = {
    ...(config.passExtra ? extra : {}),
    ...(fill(config.body, { username, password }) as Record<string, unknown>)
  }
  if (config.format === 'json') return JSON.stringify(body)
  return new URLSearchParams(
    Object.entries(body).map(([name, value]): [string, string] => [
      name,
      typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
    ])
  ).toString()
}

/** A number beyond a double is its text: no other number of JavaScript is it. */
function plain(value: unknown): unknown {
  return isRawNumber(value) ? value.rawJSON : value
}

/** An id, a name or a token, written as a text or as a number. */
function text(value: unknown): string | undefined {
  const found = plain(value)
  if (typeof found === 'number') return String(found)
  return typeof found === 'string' && found !== '' ? found : undefined
}

type SetCookie = string | string[] | undefined

/** The pairs of an answer's cookies that have one of these names. */
export function cookiesIn(fields: SetCookie, names: readonly string[]): string[] {
  const pairs = [fields ?? []].flat().map(cookie => cookie.split(';', 1)[0] ?? '')
  return pairs.filter(pair => names.includes(pair.slice(0, Math.max(0, pair.indexOf('=')))))
}

/** An answer that is no JSON has no members; the tests on it decide. */
function readAnswer(body: Buffer, headers: Headers): unknown {
  try {
    return readJson(body, headers, maxAnswerBytes)
  } catch {
    return readLeniently(body)
  }
}

/**
 * Back-ends name a charset that their text is not in: a broken letter in a name refuses no sign-in.
 */
function readLeniently(body: Buffer): unknown {
  try {
    return parseKeepingDigits(body.toString('utf8'))
  } catch {
    return null
  }
}
