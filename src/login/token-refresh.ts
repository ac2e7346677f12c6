/** Renews back-ends' tokens before they expire, once across all replicas. */
import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { BoundedMap } from '../bounded-map.ts'
import { GatewayError } from '../errors/errors.ts'
import type { Trail } from '../observability/trail.ts'
import { isSameCredential } from '../session/credentials.ts'
import type { Sessions } from '../session/sessions.ts'
import { liveIn } from '../session/store.ts'
import type { Live } from '../session/types.ts'
import { steadyNow } from '../steady-clock.ts'
import { type CredentialSource, endAtSource } from './credential-source.ts'

interface Options {
  readonly sessions: Sessions
  readonly sources: readonly CredentialSource[]
  readonly onFailed: (error: unknown) => void
}

/** So long before it expires a token is renewed. */
const renewBeforeMs = 60_000
/** Longer than a renewal may take: a replica that dies during one delays the others for so long. */
const lockMs = 15_000
const lockRetryMs = 25
const maxPauses = 50_000

export function createTokenRefresh(options: Options) {
  const { sessions, sources, onFailed } = options
  const running = new Map<string, Promise<Live>>()
  /** By the key of a session: until then its token is used, though it expires soon. */
  const pauses = new BoundedMap<number>(maxPauses)

  const reread = async (live: Live): Promise<Live> => liveIn(await sessions.read(live.key))

  /**
   * The session with a valid token. Waits for a renewal only when the old token has expired.
   * @throws GatewayError `session.upstream` when the back-end refuses; `upstream.*` when it is
   * unavailable and the old token has expired
   * @param trail of the request that needs the token
   */
  async function ensureFresh(lookedUp: Live, trail?: Trail): Promise<Live> {
    const live = sessions.credentials.withHeld(lookedUp)
    const { credential, source: name } = live.session
    const source =
      credential?.expiresAt === undefined ? undefined : sources.find(each => each.name === name)
    const end = credential?.expiresAt ?? Infinity
    if (source?.renew === undefined || Date.now() < end - renewBeforeMs) return live
    if (Date.now() < end && steadyNow() < (pauses.peek(live.key) ?? 0)) return live
    let renewal = running.get(live.key)
    if (renewal === undefined) {
      renewal = renewOnce(live, source, trail).finally(() => {
        running.delete(live.key)
        pauses.set(live.key, steadyNow() + renewBeforeMs / 4)
      })
      running.set(live.key, renewal)
    }
    if (Date.now() >= end) return await renewal
    renewal.catch(onFailed)
    return live
  }

  /** Under a lock of the store; what another process has renewed meanwhile is not renewed again. */
  async function renewOnce(live: Live, source: CredentialSource, trail?: Trail): Promise<Live> {
    const [name, owner] = [`renew:${live.key}`, randomUUID()]
    const until = steadyNow() + lockMs
    while (!(await sessions.store.lock(name, owner, lockMs))) {
      await wait(lockRetryMs)
      const current = await reread(live)
      if (!isSameCredential(current.session, live.session)) return current
      if (steadyNow() >= until) throw new GatewayError('upstream.timeout')
    }
    try {
      const current = await reread(live)
      if (!isSameCredential(current.session, live.session)) return current
      return await exchange(current, source, trail)
    } finally {
      await sessions.store.unlock(name, owner).catch(onFailed)
    }
  }

  async function exchange(live: Live, source: CredentialSource, trail?: Trail): Promise<Live> {
    const change = await source.renew?.(live.session, trail)
    if (change === undefined) {
      const current = await reread(live)
      if (!isSameCredential(current.session, live.session)) return current
      await sessions.endRefused(live)
      throw new GatewayError('session.upstream')
    }
    const renewed = await sessions.credentials.renew(live, change.credential, change.identity)
    if ('ended' in renewed) {
      // It ended before it had the new token, which would stay valid.
      const session = { ...live.session, ...change }
      endAtSource(options, session, trail).catch(onFailed)
    }
    return liveIn(renewed)
  }

  return { ensureFresh }
}
