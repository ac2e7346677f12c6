/** Renews back-ends' tokens before they expire, once across all replicas. */
import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { BoundedMap } from '../bounded-map.ts'
import { GatewayError } from '../errors/errors.ts'
import type { Trail } from '../observability/trail.ts'
import type { Live, Evaluation } from '../session/evaluate.ts'
import type { Session } from '../session/record.ts'
import { isSameCredential } from '../session/renewals.ts'
import type { Sessions } from '../session/session.ts'
import type { Fence } from '../session/store.ts'
import { steadyNow } from '../steady-clock.ts'
import { type CredentialSource, endAtSource } from './credential-source.ts'

export interface TokenRefresh {
  /**
   * The session with a valid token. Waits for a renewal only when the old token has expired.
   * @throws GatewayError `session.upstream` when the back-end refuses; `upstream.*` when it is
   * unavailable and the old token has expired
   * @param trail of the request that needs the token
   */
  readonly ensureFresh: (live: Live, trail?: Trail) => Promise<Live>
}

interface Context {
  readonly sessions: Sessions
  readonly now: () => number
  readonly onFailed: (error: unknown) => void
}

type Options = Pick<Context, 'sessions'> &
  Partial<Context> & { readonly sources: readonly CredentialSource[] }

/** Longer than a renewal may take: a replica that dies during one delays the others for so long. */
const lockMs = 15_000
const lockRetryMs = 25
const maxPauses = 50_000

interface Exchanged {
  readonly live: Live
  /** The store is unavailable, so that only this process has the new credential yet. */
  readonly isHeld: boolean
}

/** Another process may have a newer credential: the session goes on and the client may retry. */
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
  const context: Context = { sessions, now, onFailed }
  const running = new Map<string, Promise<Live>>()
  /** By the key of a session: until then its token is used, though it expires soon. */
  const pauses = new BoundedMap<number>(maxPauses)

  async function ensureFresh(lookedUp: Live, trail?: Trail): Promise<Live> {
    const live = sessions.withHeld(lookedUp)
    const { credential, source: name } = live.session
    const source =
      credential?.expiresAt === undefined ? undefined : sources.find(each => each.name === name)
    const end = credential?.expiresAt ?? Infinity
    const beforeMs = source?.renewBeforeMs ?? 0
    if (source?.renew === undefined || now() < end - beforeMs) return live
    if (now() < end && steadyNow() < (pauses.peek(live.key) ?? 0)) return live
    let renewal = running.get(live.key)
    if (renewal === undefined) {
      renewal = new Renewal(context, live, source, trail).run().finally(() => {
        running.delete(live.key)
        pauses.set(live.key, steadyNow() + beforeMs / 4)
      })
      running.set(live.key, renewal)
    }
    if (now() >= end) return await renewal
    renewal.catch(onFailed)
    return live
  }

  return { ensureFresh }
}

/** One renewal of a session's credential, under a lock of the store. */
class Renewal {
  readonly #context: Context
  readonly #live: Live
  readonly #source: CredentialSource
  readonly #lockName: string
  readonly #owner = randomUUID()
  readonly #trail: Trail | undefined
  /** Whether an earlier holder of the lock may still write the credential that it got. */
  #isContested = false
  /** Whether this process was about to exchange the credential. */
  #hasFence = false

  constructor(context: Context, live: Live, source: CredentialSource, trail?: Trail) {
    this.#context = context
    this.#trail = trail
    this.#live = live
    this.#source = source
    this.#lockName = `renew:${live.key}`
  }

  async run(): Promise<Live> {
    const { sessions, onFailed } = this.#context
    const renewedByOther = await this.#acquireLock()
    if (renewedByOther !== undefined) return renewedByOther
    let isSettled = false
    try {
      const current = await this.#reread()
      // The holder of the lock before this one may have renewed the credential.
      if (this.#isRenewed(current)) return current
      const { live, isHeld } = await this.#exchange(current)
      isSettled = !isHeld
      return live
    } catch (error) {
      isSettled = this.#hasFence && !(error instanceof Contested) && !this.#isContested
      throw error
    } finally {
      await sessions.unlock(this.#lockName, this.#owner, isSettled).catch(onFailed)
    }
  }

  /** @returns the session, without the lock, where another process has renewed it meanwhile */
  async #acquireLock(): Promise<Live | undefined> {
    const { sessions } = this.#context
    const until = steadyNow() + lockMs
    while (!(await sessions.lock(this.#lockName, this.#owner, lockMs))) {
      await wait(lockRetryMs)
      const current = await this.#reread()
      if (this.#isRenewed(current)) return current
      if (steadyNow() >= until) throw new GatewayError('upstream.timeout')
    }
    return undefined
  }

  /** Confirms the lock and extends it; undefined where it was lost. */
  #extendLock(): Promise<Fence | undefined> {
    return this.#context.sessions.fence(this.#lockName, this.#owner, lockMs)
  }

  /**
   * Exchanges the credential at the back-end. The lock is confirmed first: a process that lost it,
   * or that cannot reach the store to write the result, must not use up the old credential.
   */
  async #exchange(live: Live): Promise<Exchanged> {
    const { sessions, onFailed } = this.#context
    const fence = await this.#extendLock()
    if (fence === undefined) throw new Contested()
    this.#isContested = fence.isContested
    this.#hasFence = true
    // A back-end may take longer than the lock lasts.
    const heartbeat = setInterval(() => {
      this.#extendLock().catch(onFailed)
    }, lockMs / 3)
    const response = this.#source.renew?.(live.session, this.#trail) ?? Promise.resolve(undefined)
    const credential = await response.finally(() => clearInterval(heartbeat))
    if (credential === undefined) return await this.#onRefused(live)
    // A session that ends before it has the new token would leave that valid.
    const onLost = (session: Session) => {
      endAtSource(this.#source, sessions, session, this.#trail).catch(onFailed)
    }
    const renewed = await sessions.renew(live, credential, fence.number, onLost)
    if ('live' in renewed) return { live: renewed.live, isHeld: renewed.isHeld === true }
    throw errorOf(renewed)
  }

  /** Ends the session, unless another process may have exchanged the credential before. */
  async #onRefused(live: Live): Promise<Exchanged> {
    const current = await this.#reread()
    if (this.#isRenewed(current)) return { live: current, isHeld: false }
    if (this.#isContested || (await this.#extendLock()) === undefined) throw new Contested()
    await this.#context.sessions.endRefused(live)
    throw new GatewayError('session.upstream')
  }

  async #reread(): Promise<Live> {
    const { sessions } = this.#context
    const evaluation = await sessions.reread(this.#live)
    // What this process could not write yet is newer than what is stored.
    if ('live' in evaluation) return sessions.withHeld(evaluation.live)
    throw errorOf(evaluation)
  }

  #isRenewed(current: Live): boolean {
    return !isSameCredential(current.session, this.#live.session)
  }
}

function errorOf(evaluation: Exclude<Evaluation, { live: Live }>): GatewayError {
  if ('ended' in evaluation) return new GatewayError(`session.${evaluation.ended}`)
  return new GatewayError('session.unavailable', { retryAfter: 2 })
}
