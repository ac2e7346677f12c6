/** The embedded session store: for one process, lost with it. */
import { steadyNow } from '../steady-clock.ts'
import { blocks, blocksOf } from './blocked-users.ts'
import { type Follower, type Opening, type SessionStore, tombstoneMs } from './store.ts'
import { type EndReason, isKey, type SignedIn, userDigest, type UserId, userKey } from './types.ts'

interface Entry {
  sealed: string
  readonly user: SignedIn
  idleEnd: number
  /** Of one that was ended, the time of that. */
  absoluteEnd: number
  ended?: EndReason
}

const sweepEveryMs = 60_000

export class MemoryStore implements SessionStore {
  /** By key, in the order of their sign-ins. */
  readonly #entries = new Map<string, Entry>()
  /** By name, the ends of their members. */
  readonly #sets = new Map<string, Map<string, number>>()
  #sweptAt = 0
  #follower: Follower | undefined

  #alive(key: string): Entry | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.ended !== undefined) return undefined
    return Math.min(entry.idleEnd, entry.absoluteEnd) > steadyNow() ? entry : undefined
  }

  #end(keys: readonly string[], ended: EndReason): Map<string, string> {
    const records = new Map<string, string>()
    for (const key of keys) {
      const entry = this.#alive(key)
      if (entry === undefined) continue
      records.set(key, entry.sealed)
      Object.assign(entry, { ended, sealed: '', absoluteEnd: steadyNow() })
      this.#follower?.onChanged(key)
    }
    return records
  }

  /** Those that would be idle first stand first. */
  #keysOf(user: UserId): string[] {
    const digest = userDigest(user)
    return [...this.#entries]
      .filter(([key]) => key.startsWith(digest) && this.#alive(key) !== undefined)
      .toSorted(([, a], [, b]) => a.idleEnd - b.idleEnd)
      .map(([key]) => key)
  }

  async open(opening: Opening) {
    const { key, stored, user, max, refuse, former } = opening
    const now = steadyNow()
    this.#sweep(now)
    const blocked = this.#endsIn(blocks)
    if (blocksOf(user).some(each => blocked.has(each))) return 'blocked'
    // As in Redis: no key is opened twice, and none again.
    if (this.#entries.has(key)) return new Map<string, string>()
    const others = this.#keysOf(user).filter(other => other !== former?.key)
    const excess = Math.max(0, others.length + 1 - max)
    if (excess > 0 && refuse) return 'full'
    const ended = this.#end([former?.key ?? '', ...others.slice(0, excess)], 'replaced')
    const { sealed, idleMs, absoluteMs } = stored
    this.#entries.set(key, { sealed, user, idleEnd: now + idleMs, absoluteEnd: now + absoluteMs })
    return ended
  }

  async read(key: string) {
    const entry = this.#entries.get(key)
    const now = steadyNow()
    if (entry === undefined || entry.absoluteEnd + tombstoneMs <= now) return undefined
    const { ended, sealed, idleEnd, absoluteEnd } = entry
    if (ended !== undefined) return { ended }
    return { sealed, idleMs: idleEnd - now, absoluteMs: absoluteEnd - now }
  }

  async touch(key: string, idleMs: number): Promise<boolean> {
    const entry = this.#alive(key)
    if (entry === undefined) return false
    entry.idleEnd = steadyNow() + idleMs
    return true
  }

  async replace(key: string, from: string, to: string): Promise<boolean> {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.ended !== undefined || entry.sealed !== from) return false
    entry.sealed = to
    this.#follower?.onChanged(key)
    return true
  }

  async end(_user: unknown, keys: readonly string[], reason: EndReason) {
    return this.#end(keys, reason)
  }

  async keysOf(user: UserId): Promise<string[]> {
    return this.#keysOf(user)
  }

  async endAll(): Promise<void> {
    for (const [key, { user }] of this.#entries) {
      if (!isKey(user)) this.#end([key], 'revoked')
    }
  }

  async signedIn(max: number, of: 'users' | 'keys' = 'users') {
    const users = new Map<string, SignedIn>()
    for (const key of [...this.#entries.keys()].toReversed()) {
      const user = this.#alive(key)?.user
      if (user === undefined || isKey(user) !== (of === 'keys')) continue
      if (!users.has(userKey(user))) users.set(userKey(user), user)
    }
    return { total: users.size, users: [...users.values()].slice(0, max) }
  }

  async *scan() {
    yield (await this.signedIn(Infinity)).users
  }

  /** Of those that have not ended. */
  #endsIn(set: string): Map<string, number> {
    const members = this.#sets.get(set) ?? new Map<string, number>()
    for (const [member, until] of members) if (until <= steadyNow()) members.delete(member)
    return members
  }

  async addTo(set: string, member: string, ttlMs: number) {
    this.#sweep(steadyNow())
    this.#sets.set(set, this.#endsIn(set).set(member, steadyNow() + ttlMs))
    return await this.membersOf(set)
  }

  async removeFrom(set: string, member: string): Promise<boolean> {
    return this.#endsIn(set).delete(member)
  }

  async membersOf(set: string) {
    const now = steadyNow()
    return new Map(Array.from(this.#endsIn(set), ([member, until]) => [member, until - now]))
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
    for (const [key, { absoluteEnd }] of this.#entries) {
      if (absoluteEnd + tombstoneMs <= now) this.#entries.delete(key)
    }
    for (const set of this.#sets.keys()) {
      if (this.#endsIn(set).size === 0) this.#sets.delete(set)
    }
  }
}
