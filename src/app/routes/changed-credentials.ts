/**
 * Credentials that a back-end changes in ordinary responses: cookies that it renews with each
 * (PHP, ASP.NET, Laravel), and tokens in a header. The session takes them over.
 */
import { credentialOf } from '../../config/schema/routes.ts'
import type { UpstreamLoginConfig } from '../../config/schema/upstream-login.ts'
import { cookiesAfter } from '../../login/credential-cookies.ts'
import type { UpstreamResponse } from '../../proxy/response.ts'
import type { Sessions } from '../../session/sessions.ts'
import type { Live } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'
import type { Target } from './route.ts'

/**
 * @returns called with each response to a session; undefined for an upstream that changes no
 * credential
 */
export function takeCredentialOf(
  { config, sessions }: Gateway,
  { upstream, upstreamName }: Target
): ((asked: Live, headers: UpstreamResponse['headers']) => void) | undefined {
  if (credentialOf(upstream.config.credential).as === 'none') return undefined
  const bySource = new Map<string, UpstreamLoginConfig>()
  for (const [name, source] of Object.entries(config.gateway.login.sources)) {
    // The credential of one back-end is none of another's to change.
    if (source.kind !== 'upstream-login' || source.upstream !== upstreamName) continue
    const changes = source.cookies.length > 0 || source.renewedToken !== undefined
    if (changes) bySource.set(name, source)
  }
  if (bySource.size === 0) return undefined
  return (asked, headers) => {
    const source = bySource.get(asked.session.source)
    if (source !== undefined) take(sessions, source, asked, headers)
  }
}

function take(
  sessions: Pick<Sessions, 'credentials'>,
  { cookies: names, renewedToken = '' }: UpstreamLoginConfig,
  asked: Live,
  headers: UpstreamResponse['headers']
): void {
  const setCookie = headers['set-cookie']
  const token = headers[renewedToken]
  if (setCookie === undefined && token === undefined) return
  // Another response may have changed it meanwhile: of two at once the later one counts.
  const live = sessions.credentials.withHeld(asked)
  const { credential = {} } = live.session
  const before = credential.cookies ?? ''
  const cookies = cookiesAfter(before, setCookie, names)
  const isNewToken = typeof token === 'string' && isSendable(token) && token !== credential.token
  const areNewCookies = cookies !== before && isSendable(cookies)
  if (!isNewToken && !areNewCookies) return
  sessions.credentials.take(live, {
    ...(areNewCookies && { cookies }),
    ...(isNewToken && { token })
  })
}

function isSendable(value: string): boolean {
  return /^[\x20-\x7e]+$/.test(value)
}
