/**
 * Sessions by what their OpenID provider calls them: each name is a set of keys and of marks of
 * logouts. To add one gives the others: of two at once, the later sees the other.
 */
import { hash } from 'node:crypto'
import { GatewayError } from '../errors/errors.ts'
import { type SessionStore, tombstoneMs } from './store.ts'
import type { End, Ended, EndReason, Evaluation, Live, ProviderSession, Session } from './types.ts'

interface Records {
  readonly store: SessionStore
  read(key: string): Promise<Evaluation>
  end(live: Live, reason: EndReason, end: End): Promise<{ readonly sessions: Session[] }>
}

const mark = '!'
const unknown: Ended = { ended: 'unknown' }

export function providerName(...parts: readonly string[]): string {
  return hash('sha256', JSON.stringify(parts), 'base64url')
}

/** @throws GatewayError `session.upstream` for a sign-in that the provider has ended meanwhile */
export async function addToProvider(
  store: SessionStore,
  key: string,
  { names, issuedAt }: ProviderSession,
  absoluteMs: number
): Promise<void> {
  const members = await Promise.all(names.map(name => store.addTo(name, key, absoluteMs)))
  const hasEnded = members
    .flatMap(ofName => [...ofName.keys()])
    .some(member => member.startsWith(mark) && Number(member.slice(mark.length)) >= issuedAt)
  if (hasEnded) throw new GatewayError('session.upstream')
}

/** Ends sessions, and sign-ins that are under way. @returns those that were alive */
export async function endByProvider(sessions: Records, name: string, issuedAt: number, end: End) {
  const members = await sessions.store.addTo(name, `${mark}${issuedAt}`, tombstoneMs)
  const keys = [...members.keys()].filter(member => !member.startsWith(mark))
  const ended = await Promise.all(
    keys.map(async key => {
      // Just after a failover the store cannot tell what is unknown, and takes ends all the same.
      const found = await sessions.read(key).catch(() => unknown)
      if ('live' in found) return (await sessions.end(found.live, 'upstream', end)).sessions
      // Its sign-in is about to open it, and cannot any more.
      if (found.ended === 'unknown') await sessions.store.end(undefined, [key], 'upstream')
      return []
    })
  )
  return ended.flat()
}
