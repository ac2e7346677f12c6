/** Ends sessions for good: one, some of a user's, or everyone's. */
import { type createEvaluator, type Live, tombstoneMs } from './evaluate.ts'
import { type IdentityKey, identityKey } from './identity-key.ts'
import { type EndReason, keyOf, publicId } from './record.ts'
import { type SessionStore, tombstoneMark } from './store.ts'

/** Selects one of a user's sessions by its public id, or all but one. */
interface Which {
  readonly only?: string
  readonly except?: string
}

interface Options {
  readonly store: SessionStore
  readonly parse: ReturnType<typeof createEvaluator>['parse']
  /** Drops what this process holds of a session. */
  readonly drop: (key: string) => void
  /** Called with how many were alive. */
  readonly onEnded: (cause: EndCause, count: number) => void
}

/** Why a session was ended, where its reason says less: users sign out, operators revoke. */
export type EndCause = EndReason | 'signed-out'

export function createEnding({ store, parse, drop, onEnded }: Options) {
  /** @returns how many were alive. @throws StoreUnavailable */
  async function endKeys(
    keys: readonly string[],
    reason: EndReason,
    cause: EndCause = reason
  ): Promise<number> {
    const ended = await Promise.all(
      keys.map(async key => {
        const wasAlive = await store.end(key, tombstoneMark + reason, tombstoneMs)
        drop(key)
        return wasAlive
      })
    )
    const count = ended.filter(Boolean).length
    if (count > 0) onEnded(cause, count)
    return count
  }

  /**
   * Ends the session of a cookie's value; one that is not there stays so.
   * @returns whether it was alive
   * @throws StoreUnavailable
   */
  async function close(secretId: string, reason: EndReason, cause?: EndCause): Promise<boolean> {
    return (await endKeys([keyOf(secretId)], reason, cause)) === 1
  }

  /** Ends a live session. @throws StoreUnavailable */
  const end = async ({ key }: Live, reason: EndReason): Promise<boolean> =>
    (await endKeys([key], reason)) === 1

  /**
   * Ends sessions of a user: one by its public id, all but one, or all.
   * @returns how many were alive
   * @throws StoreUnavailable
   */
  async function closeOf(user: IdentityKey, { only, except }: Which = {}): Promise<number> {
    const keys = (await store.sessionKeysOf(user)).filter(
      key =>
        (only === undefined || publicId(key) === only) &&
        (except === undefined || publicId(key) !== except)
    )
    const isOfAnother = await Promise.all(keys.map(async key => await isSurelyOfAnother(key, user)))
    const closed = await endKeys(
      keys.filter((_, index) => isOfAnother[index] === false),
      'revoked'
    )
    // A session that an earlier attempt ended, and answered 503, may be in no index any more.
    if (closed === 0) await store.confirmEnds()
    return closed
  }

  /** A record that cannot be read may be the user's, and is closed too. */
  async function isSurelyOfAnother(key: string, user: IdentityKey): Promise<boolean> {
    const stored = await store.read(key)
    const record = stored && parse(key, stored)
    return record !== undefined && 'live' in record && identityKey(record.live.session) !== user
  }

  /** Ends all sessions of everyone. @throws StoreUnavailable */
  const closeAll = async (): Promise<void> => {
    await store.bumpEpoch()
  }

  return { endKeys, close, end, closeOf, closeAll }
}
