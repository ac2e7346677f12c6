/**
 * The back-end's own session of a user, as its ordinary responses tell of it: that it has ended
 * (`sessionEnded` of the upstream), or that its credential is another one from now on.
 */
import { Readable } from 'node:stream'
import { BoundedMap } from '../../bounded-map.ts'
import { credentialOf } from '../../config/schema/routes.ts'
import { GatewayError } from '../../errors/errors.ts'
import { cookiesAfter } from '../../login/credential-cookies.ts'
import type { Call } from '../../proxy/receiver.ts'
import { discard, type UpstreamResponse } from '../../proxy/response.ts'
import type { Sessions } from '../../session/sessions.ts'
import type { Live } from '../../session/types.ts'
import type { Gateway } from '../gateway.ts'
import type { Target } from './compile.ts'
import { type EndedTest, saysEnded, unconfirmed } from './ended.ts'
import { createOwnTokenReader } from './credentials.ts'

/**
 * Reads the response to a call of a session.
 * @returns the response for the client
 * @throws GatewayError `session.upstream` where the session was ended
 */
export type ReadSession = (
  live: Live,
  call: Call,
  response: UpstreamResponse
) => Promise<UpstreamResponse>

/** After a failure what the back-end says of sessions is not believed for so long. */
const distrustMs = 10_000
const maxSuspects = 10_000

/** @returns what reads for a route; undefined for an upstream that gets no credential */
export function createBackEndSessions(
  gateway: Gateway
): (target: Target) => ReadSession | undefined {
  const judgeOf = createJudges(gateway.sessions)
  return target => {
    const { credential, sessionEnded } = target.upstream.config
    if (credentialOf(credential).as === 'none') return undefined
    const readOwnToken = createOwnTokenReader(gateway, target.upstreamName)
    if (readOwnToken !== undefined) {
      return (live, call, response) => {
        const { body, headers: sent, recorded } = call
        const sendAgain = (headers: Call['headers']) =>
          target.upstream.send({ ...call, headers: { ...sent, ...headers } })
        const again = body instanceof Readable ? undefined : sendAgain
        return readOwnToken(live, recorded?.trail, response, again)
      }
    }
    const judge = sessionEnded && judgeOf(target, sessionEnded)
    return async (live, call, response) => {
      const judged = judge === undefined ? response : await judge(live, call, response)
      takeCredential(gateway, target.upstreamName, live, judged.headers)
      return judged
    }
  }
}

/**
 * A faulty back-end must not sign everybody out: two responses in a row say that a session has
 * ended, none while it fails, and none about a credential that is not the latest.
 * @returns what has the judges of several routes, which know of each other
 */
function createJudges(sessions: Sessions): (target: Target, test: EndedTest) => ReadSession {
  /** Sessions of which one response said so, by upstream and key. */
  const suspects = new BoundedMap<true>(maxSuspects)
  /** The last failure of an upstream, as of `performance.now()`. */
  const failures = new Map<string, number>()

  return ({ upstream, upstreamName: name }, test) =>
    async (live, call, response) => {
      if (live.session.credential === undefined) return response
      const { token, cookies } = live.session.credential
      const key = `${name} ${live.key}`
      if (response.status >= 500) failures.set(name, performance.now())
      if (!saysEnded(test, response)) {
        if (response.status < 400) suspects.delete(key)
        return response
      }
      discard(response)
      const failedAt = failures.get(name) ?? -Infinity
      if (performance.now() - failedAt < distrustMs) throw unconfirmed()
      if (!suspects.has(key)) {
        suspects.set(key, true)
        const isRead = call.method === 'GET' && call.body === null
        if (!isRead) throw unconfirmed()
        const second = await upstream.send(call)
        if (!saysEnded(test, second)) {
          suspects.delete(key)
          return second
        }
        discard(second)
      }
      suspects.delete(key)
      const current = await sessions.read(live.key)
      if ('live' in current) {
        const latest = sessions.credentials.withHeld(current.live)
        const held = latest.session.credential
        if (held?.token !== token || held?.cookies !== cookies) throw unconfirmed()
        await sessions.endRefused(latest)
      }
      throw new GatewayError('session.upstream')
    }
}

/**
 * Back-ends renew a cookie with each response (PHP, ASP.NET, Laravel), or a token in a header.
 * @param upstream the credential of one back-end is none of another's to change
 */
function takeCredential(
  { config, sessions: { credentials } }: Gateway,
  upstream: string,
  asked: Live,
  headers: UpstreamResponse['headers']
): void {
  const source = config.gateway.login.sources[asked.session.source]
  if (source?.kind !== 'upstream-login' || source.upstream !== upstream) return
  const { cookies: names, renewedToken = '' } = source
  const setCookie = headers['set-cookie']
  const token = headers[renewedToken]
  if (setCookie === undefined && token === undefined) return
  // Another response may have changed it meanwhile: of two at once the later one counts.
  const live = credentials.withHeld(asked)
  const { credential = {} } = live.session
  const before = credential.cookies ?? ''
  const cookies = cookiesAfter(before, setCookie, names)
  const isNewToken = typeof token === 'string' && isSendable(token) && token !== credential.token
  const areNewCookies = cookies !== before && isSendable(cookies)
  if (!isNewToken && !areNewCookies) return
  credentials.take(live, {
    ...(areNewCookies && { cookies }),
    ...(isNewToken && { token })
  })
}

function isSendable(value: string): boolean {
  return /^[\x20-\x7e]+$/.test(value)
}
