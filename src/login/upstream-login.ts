/** Credential source: a back-end's own sign-in, told by config how to ask and how to read the answer. */
import type { AnswerTest, UpstreamLoginConfig } from '../config/gateway.ts'
import { GatewayError } from '../errors.ts'
import type { Credential, Identity, Session } from '../session/session.ts'
import type { Attempt, CredentialSource } from './credential-source.ts'

/** The way to the back-end, handed in: login and proxy do not know each other. */
export type Send = (options: { method: string, path: string, headers: Record<string, string>, body?: string, timeoutMs: number, maxBytes: number }) => Promise<{ status: number, headers: Record<string, string | string[] | undefined>, body: Buffer }>

interface Options {
  readonly config: UpstreamLoginConfig
  readonly send: Send
  /** How this upstream wants the credential: `none`, `bearer`, `cookies` or `header:NAME`. */
  readonly credentialStyle: string
  readonly valueAt: (value: unknown, path: readonly string[]) => unknown
}

const maxAnswerBytes = 256 * 1024

export function createUpstreamLogin ({ config, send, credentialStyle, valueAt }: Options): CredentialSource {
  const at = (answer: unknown, path: string | undefined) => path === undefined ? undefined : valueAt(answer, path.split('.'))
  const text = (value: unknown) => typeof value === 'number' ? String(value) : typeof value === 'string' && value !== '' ? value : undefined

  const fits = (test: AnswerTest, status: number, answer: unknown) => {
    if (test.status !== undefined && !test.status.includes(status)) return false
    if (test.path === undefined) return true
    const found = at(answer, test.path)
    if (test.in !== undefined) return test.in.includes(found as string | number | boolean)
    return found !== null && found !== undefined && found !== false
  }

  const identityOf = (answer: unknown, typed: string): Identity => {
    const { user } = config
    const id = text(at(answer, user.id))
    if (id === undefined) throw new GatewayError('upstream.invalid', { cause: new Error(`the sign-in answer has no "${user.id}"`) })
    const username = text(at(answer, user.username)) ?? typed
    const roles = [at(answer, user.roles)].flat().map(text).filter(role => role !== undefined)
    const profile = at(answer, user.profile)
    return {
      id,
      username,
      name: text(at(answer, user.name)) ?? username,
      roles: roles.map(role => (Object.hasOwn(user.roleMap, role) ? user.roleMap[role] : undefined) ?? role),
      profile: typeof profile === 'object' && profile !== null && !Array.isArray(profile) ? { ...profile } : {}
    }
  }

  const credentialOf = (answer: unknown, headers: Record<string, string | string[] | undefined>): Credential => {
    const token = text(at(answer, config.token))
    const cookies = [headers['set-cookie'] ?? []].flat().map(cookie => cookie.split(';', 1)[0] ?? '').filter(pair => config.cookies.includes(pair.slice(0, Math.max(0, pair.indexOf('=')))))
    if (config.token !== undefined && token === undefined) throw new GatewayError('upstream.invalid', { cause: new Error(`the sign-in answer has no "${config.token}"`) })
    if ([token ?? '', ...cookies].some(value => /[^\x20-\x7e]/.test(value))) throw new GatewayError('upstream.invalid', { cause: new Error('the credential holds characters that no header field can') })
    return { ...(token !== undefined && { token }), ...(cookies.length > 0 && { cookies: cookies.join('; ') }) }
  }

  return {
    name: `upstream-login:${config.upstream}`,

    async verify (attempt) {
      const { status, headers, body } = await send({
        method: 'POST',
        path: config.path,
        headers: {
          accept: 'application/json',
          'content-type': config.format === 'json' ? 'application/json' : 'application/x-www-form-urlencoded',
          'x-forwarded-for': attempt.address,
          'x-request-id': attempt.requestId,
          ...config.headers
        },
        body: writeBody(config, attempt),
        timeoutMs: config.timeout,
        maxBytes: maxAnswerBytes
      })
      const answer = parseJson(body)
      if (fits(config.refused, status, answer)) return { vouched: false }
      if (!fits(config.success, status, answer)) throw new GatewayError('upstream.invalid', { cause: new Error(`the sign-in answer (status ${status}) is neither a success nor a refusal`) })
      return { vouched: true, identity: identityOf(answer, attempt.username), credential: credentialOf(answer, headers) }
    },

    async signOut ({ credential }: Session) {
      if (config.logout === undefined || credential === undefined) return
      const style = credentialStyle === 'none' ? (credential.token === undefined ? 'cookies' : 'bearer') : credentialStyle
      const { status } = await send({
        method: config.logout.method,
        path: config.logout.path,
        headers: {
          accept: 'application/json',
          ...(style === 'bearer' && credential.token !== undefined && { authorization: `Bearer ${credential.token}` }),
          ...(style.startsWith('header:') && credential.token !== undefined && { [style.slice(7)]: credential.token }),
          ...(credential.cookies !== undefined && { cookie: credential.cookies })
        },
        timeoutMs: Math.min(config.timeout, 5000),
        maxBytes: maxAnswerBytes
      })
      if (status >= 400) throw new GatewayError('upstream.error', { cause: new Error(`the sign-out was answered with status ${status}`) })
    }
  }
}

function writeBody (config: UpstreamLoginConfig, { username, password, extra }: Attempt): string {
  const fill = (template: unknown): unknown => {
    // A function as replacement: "$&" in a password is no pattern.
    if (typeof template === 'string') return template.replace(/\{(username|password)\}/g, (_, name) => name === 'username' ? username : password)
    if (Array.isArray(template)) return template.map(fill)
    if (typeof template === 'object' && template !== null) return Object.fromEntries(Object.entries(template).map(([key, value]) => [key, fill(value)]))
    return template
  }
  const body = { ...(config.passExtra ? extra : {}), ...fill(config.body) as Record<string, unknown> }
  if (config.format === 'json') return JSON.stringify(body)
  return new URLSearchParams(Object.entries(body).map(([name, value]): [string, string] => [name, typeof value === 'string' ? value : JSON.stringify(value) ?? ''])).toString()
}

/** An answer that is no JSON has no members; the tests on it decide. */
function parseJson (body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return null
  }
}
