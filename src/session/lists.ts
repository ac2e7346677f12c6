/** The sessions of a user, as the store has them. */
import { describeLive, type Listed } from './describe.ts'
import { type IdentityKey, identityKey } from './identity-key.ts'
import type { createEvaluator, CachedRecord, Live, Evaluation } from './evaluate.ts'
import type { Credential, Session } from './record.ts'
import { tombstoneMark, type IndexEntry, type SessionStore } from './store.ts'

interface Looked {
  /** Oldest first. */
  readonly live: readonly Live[]
  /** Whether some record does not open: another secret may have sealed it. */
  readonly hasOthers: boolean
}

export interface Inspected {
  readonly listed: Listed[]
  /** Whether the user has a session, also one that only another secret opens. */
  readonly isKnown: boolean
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
   * removed only where the store no longer has its record: a record that this process cannot open,
   * or takes for ended by its clock, may live on elsewhere.
   */
  async function look(user: IdentityKey, indexed: readonly IndexEntry[]): Promise<Looked> {
    const epoch = await store.epoch()
    const gone: string[] = []
    let hasOthers = false
    const looked = await Promise.all(
      indexed.map(async ({ key }) => {
        const stored = await store.read(key)
        if (stored === undefined || stored.record.startsWith(tombstoneMark)) {
          gone.push(key)
          return []
        }
        const record = parse(key, stored)
        if ('ended' in record) hasOthers = true
        const evaluation = await evaluate(record, epoch)
        return 'live' in evaluation ? [evaluation.live] : []
      })
    )
    if (gone.length > 0) await store.unindex(user, gone)
    return { live: looked.flat(), hasOthers }
  }

  /** @throws StoreUnavailable */
  async function inspect(user: IdentityKey): Promise<Inspected> {
    const { live, hasOthers } = await look(user, await store.indexEntriesOf(user))
    return { listed: live.map(describeLive), isKnown: live.length > 0 || hasOthers }
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
    const { live } = await look(user, await store.indexEntriesOf(user))
    return live.some(
      ({ session: { id, credential } }) =>
        id !== session.id && hasSameSecret(credential, session.credential)
    )
  }

  return { look, inspect, list, isCredentialShared }
}

/** The cookies beside a token may differ: the back-end ends what the token stands for. */
function hasSameSecret(a: Credential = {}, b: Credential = {}): boolean {
  if (a.token !== undefined || b.token !== undefined) return a.token === b.token
  return a.cookies !== undefined && a.cookies === b.cookies
}
