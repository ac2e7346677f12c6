/** The embedded session store: for one process, lost with it. */
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
  readonly absoluteEnd: number
}

interface Tombstone extends Ended {
  /** Until then the reason is told. */
  readonly until: number
}

const sweepEveryMs = 60_000

export class MemoryStore implements SessionStore {
  readonly #now: () => number
  readonly #records = new Map<string, Entry | Tombstone>()
  /** The keys of each user's sessions. */
  readonly #lists = new Map<string, Set<string>>()
  readonly #locks = new Map<string, { readonly owner: string; readonly until: number }>()
  /** The ends of blocks. */
  readonly #blocks = new Map<string, number>()
  readonly #sweeper: NodeJS.Timeout
  #follower: Follower | undefined

  constructor(now: () => number = steadyNow) {
    this.#now = now
    this.#sweeper = setInterval(() => this.#sweep(), sweepEveryMs).unref()
  }

  #isAlive(entry: Entry | Tombstone | undefined): entry is Entry {
    if (entry === undefined || 'ended' in entry) return false
    return Math.min(entry.idleEnd, entry.absoluteEnd) > this.#now()
  }

  #bury(key: string, ended: EndReason): boolean {
    if (!this.#isAlive(this.#records.get(key))) return false
    this.#records.set(key, { ended, until: this.#now() + tombstoneMs })
    this.#unlist(key)
    this.#follower?.onChanged(key)
    return true
  }

  #unlist(key: string): void {
    const [user] = splitKey(key)
    const list = this.#lists.get(user)
    list?.delete(key)
    if (list?.size === 0) this.#lists.delete(user)
  }

  /** Those that would be idle first stand first. */
  #aliveOf(user: string): string[] {
    const alive = [...(this.#lists.get(user) ?? [])].flatMap(key => {
      const entry = this.#records.get(key)
      return this.#isAlive(entry) ? [{ key, idleEnd: entry.idleEnd }] : []
    })
    return alive.toSorted((a, b) => a.idleEnd - b.idleEnd).map(({ key }) => key)
  }

  async open(opening: Opening): Promise<readonly string[] | 'full' | 'blocked'> {
    const { key, stored, user, max, refuse, former } = opening
    const now = this.#now()
    if (blocksOf(user).some(each => (this.#blocks.get(each) ?? 0) > now)) return 'blocked'
    // As in Redis: no key is opened twice, and none again.
    if (this.#records.has(key)) return []
    const digest = userDigest(user)
    const others = this.#aliveOf(digest).filter(other => other !== former)
    const over = others.length + 1 - max
    if (over > 0 && refuse) return 'full'
    const leaving = [former ?? '', ...others.slice(0, Math.max(0, over))]
    const ended = leaving.filter(other => this.#bury(other, 'replaced'))
    const idleEnd = now + stored.idleMs
    const absoluteEnd = now + stored.absoluteMs
    this.#records.set(key, { sealed: stored.sealed, user, idleEnd, absoluteEnd })
    this.#lists.set(digest, (this.#lists.get(digest) ?? new Set()).add(key))
    return ended
  }

  async read(key: string): Promise<Stored | Ended | undefined> {
    const entry = this.#records.get(key)
    if (entry === undefined) return undefined
    const now = this.#now()
    if ('ended' in entry) return entry.until > now ? { ended: entry.ended } : undefined
    const { sealed, idleEnd, absoluteEnd } = entry
    return { sealed, idleMs: idleEnd - now, absoluteMs: absoluteEnd - now }
  }

  async touch(key: string, idleMs: number): Promise<boolean> {
    const entry = this.#records.get(key)
    if (!this.#isAlive(entry)) return false
    entry.idleEnd = this.#now() + idleMs
    return true
  }

  async replace(key: string, from: string, to: string): Promise<boolean> {
    const entry = this.#records.get(key)
    if (entry === undefined || 'ended' in entry || entry.sealed !== from) return false
    entry.sealed = to
    this.#follower?.onChanged(key)
    return true
  }

  async end(_user: SignedIn, keys: readonly string[], reason: EndReason): Promise<string[]> {
    return keys.filter(key => this.#bury(key, reason))
  }

  async endUnknown(): Promise<void> {
    // What it does not know is nowhere.
  }

  async keysOf(user: UserId): Promise<string[]> {
    return this.#aliveOf(userDigest(user))
  }

  async endAll(): Promise<void> {
    for (const key of this.#records.keys()) this.#bury(key, 'revoked')
  }

  async signedIn(max: number): Promise<{ total: number; users: SignedIn[] }> {
    const users = new Map<string, SignedIn>()
    for (const entry of this.#records.values()) {
      if (this.#isAlive(entry)) users.set(userDigest(entry.user) + entry.user.username, entry.user)
    }
    return { total: users.size, users: [...users.values()].slice(0, max) }
  }

  async block(name: BlockedName, forMs = Infinity): Promise<void> {
    this.#blocks.set(blockOf(name), this.#now() + forMs)
  }

  async unblock(name: BlockedName): Promise<boolean> {
    return this.#blocks.delete(blockOf(name))
  }

  async blocked(): Promise<Block[]> {
    const now = this.#now()
    return [...this.#blocks].flatMap(([block, until]) => {
      if (until <= now) this.#blocks.delete(block)
      const left = until === Infinity ? undefined : until - now
      return until > now ? readBlock(block, left) : []
    })
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

  close(): void {
    clearInterval(this.#sweeper)
  }

  #sweep(): void {
    const now = this.#now()
    for (const [key, entry] of this.#records) {
      const until = 'ended' in entry ? entry.until : entry.absoluteEnd + tombstoneMs
      if (until > now) continue
      this.#records.delete(key)
      this.#unlist(key)
    }
    for (const [name, { until }] of this.#locks) if (until <= now) this.#locks.delete(name)
  }
}
