/** The sessions of a user, as the store has them. */
import { describeLive, type Listed } from './describe.ts'
import { type IdentityKey, identityKey } from './identity-key.ts'
import type { createEvaluator, CachedRecord, Live, Evaluation } from './evaluate.ts'
import type { Credential, Session } from './record.ts'
import { tombstoneMark, type IndexEntry, type SessionStore } from './store.ts'

/** The record of an index entry: a live session, or one that this process cannot read. */
interface SessionEntry {
  readonly key: string
  /** The order of sign-ins; see `IndexEntry`. */
  readonly at: number
  readonly live?: Live
  /** None of this process's secrets opens it: nobody here can use it or sign it out. */
  readonly isForeign?: boolean
}

interface Looked {
  readonly entries: readonly SessionEntry[]
  readonly unreadable: number
}

export interface Inspected {
  readonly listed: Listed[]
  /**
   * Sessions that another version of the gateway or another secret wrote, and that may be alive.
   */
  readonly unreadable: number
}

interface Options {
  readonly store: SessionStore
  readonly parse: ReturnType<typeof createEvaluator>['parse']
  /** Asks the store where a session is ahead of the epoch. */
  readonly evaluate: (record: CachedRecord | undefined, epoch: number) => Promise<Evaluation>
}

export function createLists({ store, parse, evaluate }: Options) {
  /**
   * The sessions in a user's index, oldest first. Reads the store, past the cache. An entry is
   * removed only where the store no longer has its record: a record that this process cannot read,
   * or takes for ended by its clock, may live on elsewhere.
   */
  async function look(user: IdentityKey, indexed: readonly IndexEntry[]): Promise<Looked> {
    const epoch = await store.epoch()
    const gone: string[] = []
    const entries: SessionEntry[] = []
    let unreadable = 0
    await Promise.all(
      indexed.map(async ({ key, at }) => {
        const stored = await store.read(key)
        if (stored === undefined || stored.record.startsWith(tombstoneMark)) {
          return void gone.push(key)
        }
        const record = parse(key, stored)
        if ('unreadable' in record) unreadable++
        // An entry of a former version may be about another user with the same id.
        if ('unreadable' in record && at !== undefined) {
          entries.push({ key, at, isForeign: record.unreadable === 'secret' })
        }
        const evaluation = await evaluate(record, epoch)
        if (!('live' in evaluation) || identityKey(evaluation.live.session) !== user) return
        const { live } = evaluation
        entries.push({ key, at: at ?? live.session.createdAt * 1000, live })
      })
    )
    if (gone.length > 0) await store.unindex(user, gone)
    entries.sort((a, b) => a.at - b.at || (a.key < b.key ? -1 : 1))
    return { entries, unreadable }
  }

  /**
   * The live sessions of a user, oldest first, and how many more records this process cannot read.
   * @throws StoreUnavailable
   */
  async function inspect(user: IdentityKey): Promise<Inspected> {
    const { entries, unreadable } = await look(user, await store.indexEntriesOf(user))
    const listed = entries.flatMap(({ live }) => (live === undefined ? [] : [describeLive(live)]))
    return { listed, unreadable }
  }

  /** The live sessions of a user, oldest first. @throws StoreUnavailable */
  const list = async (user: IdentityKey): Promise<Listed[]> => (await inspect(user)).listed

  /**
   * Whether another live session of its user has the same credential: some back-ends give an
   * account one token for all its sign-ins.
   * @throws StoreUnavailable
   */
  async function isCredentialShared(session: Session): Promise<boolean> {
    const user = identityKey(session)
    const { entries } = await look(user, await store.indexEntriesOf(user))
    return entries.some(
      ({ live }) =>
        live !== undefined &&
        live.session.id !== session.id &&
        hasSameSecret(live.session.credential, session.credential)
    )
  }

  return { look, inspect, list, isCredentialShared }
}

/** The cookies beside a token may differ: the back-end ends what the token stands for. */
function hasSameSecret(a: Credential = {}, b: Credential = {}): boolean {
  if (a.token !== undefined || b.token !== undefined) return a.token === b.token
  return a.cookies !== undefined && a.cookies === b.cookies
}
