/** Renewed credentials of back-ends: written by compare-and-set, held while the store is away. */
import type { Duration } from '../config/schema/primitives.ts'
import type { Evaluation, Live } from './evaluate.ts'
import type { StoredSession } from './lookup.ts'
import { recentlyUsed } from '../bounded-map.ts'
import type { Credential, Session } from './record.ts'
import type { RecordFormat } from './record-format.ts'
import { type SessionStore, StoreUnavailable } from './store.ts'

/** `isHeld`: the store could not be asked; the session is written as soon as it can. */
export type Renewed = Evaluation & { readonly isHeld?: true }

export interface Renewals {
  /**
   * Puts a credential that was exchanged for that of `from` into the session, whatever else of it
   * has changed meanwhile. One of a later holder of the lock (a greater fence) stays.
   */
  readonly renew: (from: Live, credential: Credential, fence?: number) => Promise<Renewed>
  /** The session with the credential that this process holds for it, if it holds one. */
  readonly withHeld: (live: Live) => Live
}

interface Options {
  readonly store: SessionStore
  readonly format: RecordFormat
  /** The record as the store has it now, and what that says. */
  readonly read: (key: string) => Promise<StoredSession>
  readonly onWritten: (key: string) => void
  readonly now: () => number
}

interface HeldCredential {
  readonly from: Live
  readonly live: Live
  readonly credential: Credential
  readonly fence: number
}

/** Only as many as sessions are renewed while the store is away. */
const maxHeld = 10_000
const retryEveryMs: Duration = 250
/** Others write a session once a minute at most: so many changes in a row are no accident. */
const maxTries = 10

export function createRenewals({ store, format, read, onWritten, now }: Options): Renewals {
  const held = recentlyUsed<HeldCredential>(maxHeld)
  let timer: NodeJS.Timeout | undefined

  async function write(from: Live, credential: Credential, fence: number): Promise<Evaluation> {
    const { key } = from
    for (let tries = 0; tries < maxTries; tries++) {
      const { record, evaluation } = await read(key)
      if (!('live' in evaluation) || record === undefined || !('live' in record)) return evaluation
      // As it is stored: what a review of the users file says of it is not part of the record.
      const { stored } = record
      const isOther = !isSameCredential(stored, from.session)
      if (isOther && (stored.fence ?? 0) > fence) return evaluation
      const renewed = { credential, ...(fence > 0 && { fence }) }
      const content = { session: { ...stored, ...renewed }, epoch: record.epoch }
      const sealed = format.close(key, content, record.sealed)
      if (!(await store.replace(key, record.sealed, sealed))) continue
      onWritten(key)
      const { live } = evaluation
      return { live: { ...live, session: { ...live.session, ...renewed } } }
    }
    throw new StoreUnavailable(new Error('the session changed whenever it was to be written'))
  }

  async function renew(from: Live, credential: Credential, fence = 0): Promise<Renewed> {
    try {
      return await write(from, credential, fence)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      const session = { ...from.session, credential, ...(fence > 0 && { fence }) }
      const live = { ...from, session }
      held.set(from.key, { from, live, credential, fence })
      schedule()
      return { live, isHeld: true }
    }
  }

  function schedule(): void {
    timer ??= setTimeout(() => {
      void writeHeld().finally(() => {
        timer = undefined
        if (held.size > 0) schedule()
      })
    }, retryEveryMs).unref()
  }

  async function writeHeld(): Promise<void> {
    for (const [key, { from, credential, fence }] of held.entries()) {
      const isOver = now() >= from.session.absoluteEnd
      const isWritten =
        isOver ||
        (await write(from, credential, fence).then(
          () => true,
          () => false
        ))
      // One at a time, and none where the first shows that the store is still away.
      if (!isWritten) return
      held.delete(key)
    }
  }

  function withHeld(live: Live): Live {
    if (held.size === 0) return live
    const renewal = held.get(live.key)
    if (renewal === undefined || !isSameCredential(renewal.from.session, live.session)) return live
    return renewal.live
  }

  return { renew, withHeld }
}

/** Whether two states of a session have the same token: nothing was exchanged in between. */
export function isSameCredential({ credential: a }: Session, { credential: b }: Session): boolean {
  return a?.expiresAt === b?.expiresAt && a?.token === b?.token
}
