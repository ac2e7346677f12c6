/** Keeps back-ends' tokens fresh: renewed before they end, once across all replicas. */
import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { GatewayError } from '../errors.ts'
import type { Live } from '../session/judge.ts'
import type { Sessions } from '../session/session.ts'
import type { CredentialSource } from './credential-source.ts'

export interface Upkeep {
  /**
   * The session with a token that holds. Only waits for a renewal where the old one has ended.
   * @throws GatewayError `session.upstream` when the back-end refuses; `upstream.*` when it cannot be asked and the old token has ended
   */
  readonly ensure: (live: Live) => Promise<Live>
}

interface Options {
  readonly sessions: Sessions
  readonly sources: readonly CredentialSource[]
  readonly now?: () => number
  readonly onFailed?: (error: unknown) => void
}

/** Longer than a renewal may take; a replica that dies over it holds the others up for so long. */
const lockMs = 15_000
const lookEveryMs = 25

export function createUpkeep ({ sessions, sources, now = Date.now, onFailed = () => {} }: Options): Upkeep {
  const running = new Map<string, Promise<Live>>()

  async function ensure (live: Live): Promise<Live> {
    const { credential, source: name } = live.session
    const source = credential?.expiresAt === undefined ? undefined : sources.find(each => each.name === name)
    const end = credential?.expiresAt ?? Infinity
    if (source?.renew === undefined || now() < end - (source.renewBeforeMs ?? 0)) return live
    let renewal = running.get(live.key)
    if (renewal === undefined) {
      renewal = renew(live, source).finally(() => running.delete(live.key))
      running.set(live.key, renewal)
    }
    if (now() >= end) return await renewal
    renewal.catch(onFailed)
    return live
  }

  async function renew (live: Live, source: CredentialSource): Promise<Live> {
    const owner = randomUUID()
    const name = `renew:${live.key}`
    const until = now() + lockMs
    while (!await sessions.lock(name, owner, lockMs)) {
      await wait(lookEveryMs)
      const other = await current(live)
      if (isRenewed(other, live)) return other
      if (now() >= until) throw new GatewayError('upstream.timeout')
    }
    try {
      // Whoever had the lock before us may have done it.
      const fresh = await current(live)
      if (isRenewed(fresh, live)) return fresh
      const credential = await source.renew?.(fresh.session)
      if (credential !== undefined) return await sessions.renew(fresh, credential)
      await sessions.end(fresh, 'upstream')
      throw new GatewayError('session.upstream')
    } finally {
      await sessions.unlock(name, owner).catch(onFailed)
    }
  }

  async function current (live: Live): Promise<Live> {
    const resolved = await sessions.reread(live)
    if ('live' in resolved) return resolved.live
    if ('unreadable' in resolved) throw new GatewayError('session.unavailable', { retryAfter: 2 })
    throw new GatewayError(`session.${resolved.ended}`)
  }

  return { ensure }
}

const isRenewed = (now: Live, before: Live) => now.session.credential?.expiresAt !== before.session.credential?.expiresAt || now.session.credential?.token !== before.session.credential?.token
