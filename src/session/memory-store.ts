/** The embedded session store: for one process, lost with it. */
import { setImmediate as yieldToOthers } from 'node:timers/promises'
import { steadyNow } from '../steady-clock.ts'
import { type Block, type BlockedName, blockOf, blocksOf, readBlock } from './blocked-users.ts'
import {
  type Follower,
  type Opening,
  type SessionStore,
  type Stored,
  tombstoneMs
} from './store.ts'
import {
  type Ended,
  type EndReason,
  type SignedIn,
  splitKey,
  userDigest,
  type UserId
} from './types.ts'

interface Entry {
  sealed: string
  readonly user: SignedIn
  idleEnd: number
  /** Of one that was ended, the time of that. */
  absoluteEnd: number
  ended?: EndReason
}

const sweepEveryMs = 60_000
const scannedAtOnce = 2000

export class MemoryStore implements SessionStore {
  readonly #now: () => number
  /** By user and key. */
  readonly #users = new Map<string, Map<string, Entry>>()
  /** Those of them who have a session, or had one at the last sweep; who signed in last stands last. */
  readonly #signedIn = new Set<string>()
  readonly #locks = new Map<string, { readonly owner: string; readonly until: number }>()
  /** The ends of blocks. */
  readonly #blocks = new Map<string, number>()
  #sweptAt = 0
  #follower: Follower | undefined

  constructor(now: () => number = steadyNow) {
    this.#now = now
  }

  #entry(key: string): Entry | undefined {
    const [user] = splitKey(key)
    return this.#users.get(user)?.get(key)
  }

  #isAlive(entry: Entry | undefined): entry is Entry {
    return entry !== undefined && Math.min(entry.idleEnd, entry.absoluteEnd) > this.#now()
  }

  #bury(key: string, ended: EndReason): boolean {
    const entry = this.#entry(key)
    if (!this.#isAlive(entry)) return false
    Object.assign(entry, { ended, sealed: '', absoluteEnd: this.#now() })
    this.#follower?.onChanged(key)
    this.#forget(splitKey(key)[0])
    return true
  }

  /** Where a user's sessions are over. */
  #forget(digest: string): void {
    if (this.#userOf(digest) === undefined) this.#signedIn.delete(digest)
  }

  /** As the last of the user's live sessions names it. */
  #userOf(digest: string): SignedIn | undefined {
    const entries = this.#users.get(digest)?.values()
    return entries
      ?.filter(entry => this.#isAlive(entry))
      .toArray()
      .at(-1)?.user
  }

  /** Those that would be idle first stand first. */
  #aliveOf(user: string): string[] {
    return [...(this.#users.get(user) ?? [])]
      .filter(([, entry]) => this.#isAlive(entry))
      .toSorted(([, a], [, b]) => a.idleEnd - b.idleEnd)
      .map(([key]) => key)
  }

  async open(opening: Opening): Promise<readonly string[] | 'full' | 'blocked'> {
    const { key, stored, user, max, refuse, former } = opening
    const now = this.#now()
    this.#sweep(now)
    if (blocksOf(user).some(each => (this.#blocks.get(each) ?? 0) > now)) return 'blocked'
    // As in Redis: no key is opened twice, and none again.
    if (this.#entry(key) !== undefined) return []
    const [digest] = splitKey(key)
    const others = this.#aliveOf(digest).filter(other => other !== former?.key)
    const excess = Math.max(0, others.length + 1 - max)
    if (excess > 0 && refuse) return 'full'
    const leaving = [former?.key ?? '', ...others.slice(0, excess)]
    const ended = leaving.filter(other => this.#bury(other, 'replaced'))
    const { sealed, idleMs, absoluteMs } = stored
    const entry = { sealed, user, idleEnd: now + idleMs, absoluteEnd: now + absoluteMs }
    const entries = this.#users.get(digest) ?? new Map<string, Entry>()
    this.#users.set(digest, entries.set(key, entry))
    this.#signedIn.delete(digest)
    this.#signedIn.add(digest)
    return ended
  }

  async read(key: string): Promise<Stored | Ended | undefined> {
    const entry = this.#entry(key)
    const now = this.#now()
    if (entry === undefined || entry.absoluteEnd + tombstoneMs <= now) return undefined
    const { ended, sealed, idleEnd, absoluteEnd } = entry
    if (ended !== undefined) return { ended }
    return { sealed, idleMs: idleEnd - now, absoluteMs: absoluteEnd - now }
  }

  async touch(key: string, idleMs: number): Promise<boolean> {
    const entry = this.#entry(key)
    if (!this.#isAlive(entry)) return false
    entry.idleEnd = this.#now() + idleMs
    return true
  }

  async replace(key: string, from: string, to: string): Promise<boolean> {
    const entry = this.#entry(key)
    if (entry === undefined || entry.ended !== undefined || entry.sealed !== from) return false
    entry.sealed = to
    this.#follower?.onChanged(key)
    return true
  }

  async end(_user: unknown, keys: readonly string[], reason: EndReason): Promise<string[]> {
    return keys.filter(key => this.#bury(key, reason))
  }

  async keysOf(user: UserId): Promise<string[]> {
    return this.#aliveOf(userDigest(user))
  }

  async endAll(): Promise<void> {
    for (const entries of this.#users.values()) {
      for (const key of entries.keys()) this.#bury(key, 'revoked')
    }
  }

  async signedIn(max: number): Promise<{ total: number; users: SignedIn[] }> {
    this.#sweep(this.#now())
    const users: SignedIn[] = []
    const digests = max === 0 ? [] : [...this.#signedIn]
    for (let at = digests.length - 1; at >= 0 && users.length < max; at--) {
      const user = this.#userOf(digests[at] ?? '')
      if (user !== undefined) users.push(user)
    }
    return { total: this.#signedIn.size, users }
  }

  async *scan(): AsyncGenerator<readonly SignedIn[]> {
    const digests = [...this.#signedIn]
    for (let end = digests.length; end > 0; end -= scannedAtOnce) {
      const some = digests.slice(Math.max(0, end - scannedAtOnce), end)
      yield some.flatMap(digest => this.#userOf(digest) ?? [])
      await yieldToOthers()
    }
  }

  async block(name: BlockedName, forMs = Infinity): Promise<void> {
    this.#blocks.set(blockOf(name), this.#now() + forMs)
  }

  async unblock(name: BlockedName): Promise<boolean> {
    return this.#blocks.delete(blockOf(name))
  }

  async blocked(): Promise<Block[]> {
    const now = this.#now()
    const left = Array.from(this.#blocks, ([block, until]) => readBlock(block, until - now))
    return left.filter(({ leftMs = Infinity }) => leftMs > 0)
  }

  async lock(name: string, owner: string, ttlMs: number): Promise<boolean> {
    const now = this.#now()
    if ((this.#locks.get(name)?.until ?? 0) > now) return false
    this.#locks.set(name, { owner, until: now + ttlMs })
    return true
  }

  async unlock(name: string, owner: string): Promise<void> {
    if (this.#locks.get(name)?.owner === owner) this.#locks.delete(name)
  }

  follow(follower: Follower): void {
    this.#follower = follower
  }

  /** In one process no announcement gets lost on the way. */
  isFollowed(): boolean {
    return true
  }

  /** Only what opens a session takes memory, so that it also frees what is over. */
  #sweep(now: number): void {
    if (now - this.#sweptAt < sweepEveryMs) return
    this.#sweptAt = now
    for (const [user, entries] of this.#users) {
      for (const [key, { absoluteEnd }] of entries) {
        if (absoluteEnd + tombstoneMs <= now) entries.delete(key)
      }
      if (entries.size === 0) this.#users.delete(user)
      this.#forget(user)
    }
    for (const [name, { until }] of this.#locks) if (until <= now) this.#locks.delete(name)
    for (const [block, until] of this.#blocks) if (until <= now) this.#blocks.delete(block)
  }
}
