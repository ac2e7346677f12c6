/** Ends sessions for good: one, some of a user's, or everyone's. */
import type { ErrorCode } from '../errors/errors.ts'
import { type Live, tombstoneMs } from './evaluate.ts'
import type { IdentityKey } from './identity-key.ts'
import { type EndReason, keyOf, publicId, type Session } from './record.ts'
import { EndUnconfirmed, type SessionStore, tombstoneMark } from './store.ts'

/** Selects one of a user's sessions by its public id, or all but one. */
interface Which {
  readonly only?: string
  readonly except?: string
}

interface Options {
  readonly store: SessionStore
  /** Drops what this process holds of a session. */
  readonly drop: (key: string) => void
  /** Called with how many were alive. */
  readonly onEnded: (cause: EndCause, count: number) => void
  readonly onRevoked: (revoked: Revoked) => void
}

/** The user whose sessions are ended, and the cause. */
export interface Revoker {
  readonly user: Pick<Session, 'identity' | 'source'>
  /** `sign-in`: the same user signed in again, and may have so many sessions only. */
  readonly by: 'user' | 'sign-in' | 'upstream' | 'users-file'
  /** Of the request that ended them. */
  readonly address?: string
  readonly requestId?: string
}

/** Sessions that were alive and are not any more. */
export interface Revoked extends Revoker {
  readonly reason: EndReason
  /** The public ids. */
  readonly sessions: readonly string[]
  /** Of the error, where the store did not confirm the end. */
  readonly code?: ErrorCode
}

export interface End {
  readonly cause?: EndCause
  /** Without it the end is recorded elsewhere, such as that of a sign-out or an operator's act. */
  readonly revoker?: Revoker
}

/** Why a session was ended, where its reason says less: users sign out, operators revoke. */
export type EndCause = EndReason | 'signed-out'

const isUnconfirmed = (result: PromiseSettledResult<boolean>): boolean =>
  result.status === 'rejected' && result.reason instanceof EndUnconfirmed

/** Tells of ended sessions; `code` where the store did not confirm it. */
function createReport({ onEnded, onRevoked }: Pick<Options, 'onEnded' | 'onRevoked'>) {
  return function report(
    keys: readonly string[],
    reason: EndReason,
    { cause = reason, revoker }: End,
    code?: ErrorCode
  ): void {
    if (keys.length === 0) return
    onEnded(cause, keys.length)
    const sessions = keys.map(publicId)
    if (revoker !== undefined) onRevoked({ ...revoker, reason, sessions, ...(code && { code }) })
  }
}

export function createEnding({ store, drop, ...listeners }: Options) {
  const report = createReport(listeners)

  /** @returns how many were alive. @throws StoreUnavailable */
  async function endKeys(
    keys: readonly string[],
    reason: EndReason,
    end: End = {}
  ): Promise<number> {
    const ended = await Promise.allSettled(
      keys.map(async key => {
        const wasAlive = await store.end(key, tombstoneMark + reason, tombstoneMs)
        drop(key)
        return wasAlive
      })
    )
    const keysOf = (which: (result: PromiseSettledResult<boolean>) => boolean) =>
      ended.flatMap((result, index) => (which(result) ? [keys[index] ?? ''] : []))
    const confirmed = keysOf(result => result.status === 'fulfilled' && result.value)
    report(confirmed, reason, end)
    // Before the error is thrown: a repetition finds those ended already.
    report(keysOf(isUnconfirmed), reason, end, 'session.unavailable')
    const failed = ended.find(result => result.status === 'rejected')
    if (failed !== undefined) throw failed.reason
    return confirmed.length
  }

  /**
   * Ends the session of a cookie's value; one that is not there stays so.
   * @returns whether it was alive
   * @throws StoreUnavailable
   */
  async function close(secretId: string, reason: EndReason, end: End = {}): Promise<boolean> {
    return (await endKeys([keyOf(secretId)], reason, end)) === 1
  }

  /** Ends a live session whose back-end refused its user. @throws StoreUnavailable */
  const endRefused = async ({ key, session }: Live): Promise<boolean> =>
    (await endKeys([key], 'upstream', { revoker: { user: session, by: 'upstream' } })) === 1

  /**
   * Ends sessions of a user: one by its public id, all but one, or all.
   * @returns how many were alive
   * @throws StoreUnavailable
   */
  async function closeOf(
    user: IdentityKey,
    { only, except }: Which = {},
    end: End = {}
  ): Promise<number> {
    const keys = (await store.sessionKeysOf(user)).filter(
      key =>
        (only === undefined || publicId(key) === only) &&
        (except === undefined || publicId(key) !== except)
    )
    const closed = await endKeys(keys, 'revoked', end)
    // A session that an earlier attempt ended, and answered 503, may be in no index any more.
    if (closed === 0) await store.confirmEnds()
    return closed
  }

  /** Ends all sessions of everyone. @throws StoreUnavailable */
  const closeAll = async (): Promise<void> => {
    await store.bumpEpoch()
  }

  return { endKeys, close, endRefused, closeOf, closeAll }
}
