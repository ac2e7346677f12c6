/** Keeps back-ends' tokens fresh: renewed before they end, once across all replicas. */
import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { GatewayError } from '../errors.ts'
import type { Live, Evaluation } from '../session/evaluate.ts'
import { isSameCredential } from '../session/renewals.ts'
import type { Sessions } from '../session/session.ts'
import type { Fence } from '../session/store.ts'
import type { CredentialSource } from './credential-source.ts'

export interface TokenRefresh {
  /**
   * The session with a token that holds. Only waits for a renewal where the old one has ended.
   * @throws GatewayError `session.upstream` when the back-end refuses; `upstream.*` when it cannot
   * be asked and the old token has ended
   */
  readonly ensureFresh: (live: Live) => Promise<Live>
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

interface Lock {
  /** Confirms the lock and makes it last; undefined where it was lost. */
  readonly hold: () => Promise<Fence | undefined>
  /** Whether an earlier holder may still write what it got. */
  isContested: boolean
}

interface Exchanged {
  readonly live: Live
  /** The store could not be asked, so that only this process has the new credential yet. */
  readonly isHeld: boolean
}

/** Another process may hold a newer credential: the session is not over, and may be tried again. */
class Contested extends GatewayError {
  constructor() {
    super('session.unavailable', { retryAfter: 2 })
  }
}

export function createTokenRefresh({
  sessions,
  sources,
  now = Date.now,
  onFailed = () => {}
}: Options): TokenRefresh {
  const running = new Map<string, Promise<Live>>()

  async function ensureFresh(found: Live): Promise<Live> {
    const live = sessions.withHeld(found)
    const { credential, source: name } = live.session
    const source =
      credential?.expiresAt === undefined ? undefined : sources.find(each => each.name === name)
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

  async function renew(live: Live, source: CredentialSource): Promise<Live> {
    const owner = randomUUID()
    const name = `renew:${live.key}`
    const until = now() + lockMs
    while (!(await sessions.lock(name, owner, lockMs))) {
      await wait(lookEveryMs)
      const other = await current(live)
      if (isRenewed(other, live)) return other
      if (now() >= until) throw new GatewayError('upstream.timeout')
    }
    const lock: Lock = { hold: () => sessions.fence(name, owner, lockMs), isContested: false }
    let isSettled = true
    try {
      // Whoever had the lock before us may have done it.
      const fresh = await current(live)
      if (isRenewed(fresh, live)) return fresh
      const { live: renewed, isHeld } = await exchange(fresh, source, lock)
      isSettled = !isHeld
      return renewed
    } catch (error) {
      isSettled = !(error instanceof Contested) && !lock.isContested
      throw error
    } finally {
      await sessions.unlock(name, owner, isSettled).catch(onFailed)
    }
  }

  /**
   * Exchanges the credential at the back-end. The store has confirmed the lock just before, so that
   * nothing is exchanged that nobody could write, nor by whoever was paused and lost the lock.
   */
  async function exchange(live: Live, source: CredentialSource, lock: Lock): Promise<Exchanged> {
    const fence = await lock.hold()
    if (fence === undefined) throw new Contested()
    lock.isContested = fence.isContested
    // Back-ends may take longer than a lock lasts.
    const beat = setInterval(() => {
      lock.hold().catch(onFailed)
    }, lockMs / 3)
    const asked = source.renew?.(live.session) ?? Promise.resolve(undefined)
    const credential = await asked.finally(() => clearInterval(beat))
    if (credential === undefined) return await refused(live, lock)
    const renewed = await sessions.renew(live, credential, fence.number)
    if ('live' in renewed) return { live: renewed.live, isHeld: renewed.isHeld === true }
    // The session was closed meanwhile: nobody else will ever end the new token.
    source.signOut?.({ ...live.session, credential }).catch(onFailed)
    throw errorOf(renewed)
  }

  /** A refusal ends the session, unless somebody else may have exchanged the credential before. */
  async function refused(live: Live, { hold, isContested }: Lock): Promise<Exchanged> {
    const fresh = await current(live)
    if (isRenewed(fresh, live)) return { live: fresh, isHeld: false }
    if (isContested || (await hold()) === undefined) throw new Contested()
    await sessions.end(live, 'upstream')
    throw new GatewayError('session.upstream')
  }

  async function current(live: Live): Promise<Live> {
    const resolved = await sessions.reread(live)
    if ('live' in resolved) return resolved.live
    throw errorOf(resolved)
  }

  return { ensureFresh }
}

function errorOf(resolved: Exclude<Evaluation, { live: Live }>): GatewayError {
  if ('ended' in resolved) return new GatewayError(`session.${resolved.ended}`)
  return new GatewayError('session.unavailable', { retryAfter: 2 })
}

function isRenewed(now: Live, before: Live): boolean {
  return !isSameCredential(now.session, before.session)
}
