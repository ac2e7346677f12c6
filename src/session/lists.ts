/** The sessions of a user, as the store has them. */
import { describeLive, type Listed } from './describe.ts'
import { type IdentityKey, identityKey } from './identity-key.ts'
import type { createEvaluator, CachedRecord, Live, Evaluation } from './evaluate.ts'
import { tombstoneMark, type IndexEntry, type SessionStore } from './store.ts'

/** What is behind a note: a live session, or a record that this process cannot read. */
interface Entry {
  readonly key: string
  /** The order of sign-ins; see `Note`. */
  readonly at: number
  readonly live?: Live
}

interface Looked {
  readonly entries: readonly Entry[]
  readonly unreadable: number
}

export interface Inspected {
  readonly listed: Listed[]
  /** Sessions that another version of the gateway or another secret wrote, and that may be alive. */
  readonly unreadable: number
}

interface Options {
  readonly store: SessionStore
  readonly parse: ReturnType<typeof createEvaluator>['parse']
  /** Asks the store where a session is ahead of the epoch. */
  readonly evaluate: (known: CachedRecord | undefined, epoch: number) => Promise<Evaluation>
}

export function createLists({ store, parse, evaluate }: Options) {
  /**
   * What is behind the notes of a user, oldest first. Asks the store itself, past whatever is
   * remembered. A note goes only where the store no longer has its record: what this process cannot
   * read, or takes for over by its clock, may live on elsewhere.
   */
  async function look(user: IdentityKey, notes: readonly IndexEntry[]): Promise<Looked> {
    const epoch = await store.epoch()
    const gone: string[] = []
    const entries: Entry[] = []
    let unreadable = 0
    await Promise.all(
      notes.map(async ({ key, at }) => {
        const found = await store.read(key)
        if (found === undefined || found.record.startsWith(tombstoneMark))
          return void gone.push(key)
        const known = parse(key, found)
        if ('unreadable' in known) unreadable++
        // A note of a former version may be about another user with the same id.
        if ('unreadable' in known && at !== undefined) entries.push({ key, at })
        const resolved = await evaluate(known, epoch)
        if (!('live' in resolved) || identityKey(resolved.live.session) !== user) return
        entries.push({ key, at: at ?? resolved.live.session.createdAt * 1000, live: resolved.live })
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

  return { look, inspect }
}
