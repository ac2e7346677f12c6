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
   * @param onLost called with the session and its new credential where it has ended before that was
   * written
   */
  readonly renew: (
    from: Live,
    credential: Credential,
    fence?: number,
    onLost?: (session: Session) => void
  ) => Promise<Renewed>
  /**
   * Takes a credential that a back-end has changed in an ordinary response: it is used here at
   * once, and written at most once in 5 s.
   */
  readonly take: (from: Live, credential: Credential) => void
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

/** A credential that was exchanged for that of `from`. */
interface NewCredential {
  readonly from: Live
  readonly credential: Credential
  readonly fence: number
  readonly onLost: (session: Session) => void
  /** Not written before, as of `performance.now()`. */
  readonly dueAt: number
}

/** A back-end may change a cookie with each response. */
const writeEveryMs = 5000

/** Only as many as sessions are renewed while the store is away. */
const maxHeld = 10_000
const retryEveryMs: Duration = 250
/** Others write a session once a minute at most: so many changes in a row are no accident. */
const maxTries = 10

export function createRenewals(options: Options): Renewals {
  const { now } = options
  const write = createWriter(options)
  const held = recentlyUsed<NewCredential>(maxHeld)
  /** When a credential that was taken was last written. */
  const writtenAt = recentlyUsed<number>(maxHeld)
  let timer: NodeJS.Timeout | undefined

  async function renew(
    from: Live,
    credential: Credential,
    fence = 0,
    onLost: NewCredential['onLost'] = () => {}
  ): Promise<Renewed> {
    const renewal = { from, credential, fence, onLost, dueAt: 0 }
    try {
      return await write(renewal)
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      held.set(from.key, renewal)
      schedule()
      return { live: { ...from, session: renewed(from.session, renewal) }, isHeld: true }
    }
  }

  function take(from: Live, credential: Credential): void {
    const { key } = from
    const dueAt = held.peek(key)?.dueAt ?? (writtenAt.peek(key) ?? -Infinity) + writeEveryMs
    held.set(key, { from, credential, fence: from.session.fence ?? 0, onLost: () => {}, dueAt })
    if (dueAt <= performance.now()) void writeHeld()
    schedule()
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
    const startedAt = performance.now()
    for (const [key, renewal] of held.entries()) {
      if (renewal.dueAt > startedAt) continue
      if (now() >= renewal.from.session.absoluteEnd) lose(renewal)
      else {
        const isSettled = await write(renewal).then(
          () => true,
          () => false
        )
        // One at a time, and none where the first shows that the store is still away.
        if (!isSettled) return
        writtenAt.set(key, performance.now())
      }
      // The held credential may have been exchanged while it was written.
      if (held.peek(key) === renewal) held.delete(key)
    }
  }

  function withHeld(live: Live): Live {
    if (held.size === 0) return live
    const renewal = held.get(live.key)
    if (renewal === undefined || isSuperseded(live.session, renewal)) return live
    return { ...live, session: renewed(live.session, renewal) }
  }

  return { renew, take, withHeld }
}

type Write = (renewal: NewCredential) => Promise<Evaluation>

/** Writes by compare-and-set. */
function createWriter({ store, format, read, onWritten }: Omit<Options, 'now'>): Write {
  return async renewal => {
    const { key } = renewal.from
    for (let tries = 0; tries < maxTries; tries++) {
      const { record, evaluation } = await read(key)
      if (!('live' in evaluation) || record === undefined || !('live' in record)) {
        lose(renewal)
        return evaluation
      }
      // As it is stored: what a review of the users file says of it is not part of the record.
      const { stored } = record
      if (isSuperseded(stored, renewal)) return evaluation
      const content = { session: renewed(stored, renewal), epoch: record.epoch }
      const sealed = format.close(key, content)
      if (!(await store.replace(key, record.sealed, sealed))) continue
      onWritten(key)
      const { live } = evaluation
      return { live: { ...live, session: renewed(live.session, renewal) } }
    }
    throw new StoreUnavailable(new Error('the session changed whenever it was to be written'))
  }
}

function renewed(session: Session, { credential, fence }: NewCredential): Session {
  return { ...session, credential, ...(fence > 0 && { fence }) }
}

/** Whether a later holder of the lock has renewed the credential. */
function isSuperseded(stored: Session, { from, fence }: NewCredential): boolean {
  return !isSameCredential(stored, from.session) && (stored.fence ?? 0) > fence
}

function lose(renewal: NewCredential): void {
  renewal.onLost(renewed(renewal.from.session, renewal))
}

/** Whether two states of a session have the same token: nothing was exchanged in between. */
export function isSameCredential({ credential: a }: Session, { credential: b }: Session): boolean {
  return a?.expiresAt === b?.expiresAt && a?.token === b?.token
}
