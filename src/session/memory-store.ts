/** The embedded session store: one process, gone with it. */
import type { IdentityKey } from './identity-key.ts'
import type { SignedIn } from './record.ts'
import {
  contestedMs,
  tombstoneMark,
  StoreUnavailable,
  type Follower,
  type SessionStore
} from './store.ts'

interface Entry {
  record: string
  endsAt: number
}

const sweepEveryMs = 60_000

export function createMemoryStore(now: () => number = Date.now): SessionStore {
  const entries = new Map<string, Entry>()
  const notes = new Map<IdentityKey, Map<string, { readonly at: number; readonly until: number }>>()
  let lastNotedAt = 0
  const locks = new Map<string, { owner: string; endsAt: number }>()
  const signedIn = new Map<string, { readonly user: SignedIn; readonly until: number }>()
  const fences = new Map<string, { owner: string; number: number; endsAt: number }>()
  let lastFence = 0
  let epoch = 0
  let follower: Follower | undefined
  const sweep = setInterval(() => {
    const time = now()
    for (const [key, { endsAt }] of entries) if (endsAt <= time) entries.delete(key)
    for (const [key, { until }] of signedIn) if (until <= time) signedIn.delete(key)
    for (const [name, { endsAt }] of fences) if (endsAt <= time) fences.delete(name)
    for (const [name, { endsAt }] of locks) if (endsAt <= time) locks.delete(name)
    for (const [user, keys] of notes) {
      for (const [key, { until }] of keys) if (until <= time) keys.delete(key)
      if (keys.size === 0) notes.delete(user)
    }
  }, sweepEveryMs)
  // In one process news is as good as its word: nothing can get lost on the way.
  const alive = setInterval(() => follower?.onHeartbeat(0), 250)
  sweep.unref()
  alive.unref()
  const entryOf = (key: string) => {
    const entry = entries.get(key)
    if (entry !== undefined && entry.endsAt > now()) return entry
    entries.delete(key)
    return undefined
  }

  const notesOf = (user: IdentityKey) => {
    const found = [...(notes.get(user) ?? [])]
    return found.flatMap(([key, { at, until }]) => (until > now() ? [{ key, at }] : []))
  }

  return {
    async create(key, record, ttlMs) {
      if (entryOf(key) !== undefined) {
        throw new StoreUnavailable(new Error('a session with this id exists already'))
      }
      entries.set(key, { record, endsAt: now() + ttlMs })
      follower?.onChanged(key)
    },
    async read(key) {
      const entry = entryOf(key)
      return entry && { record: entry.record, ttlMs: entry.endsAt - now() }
    },
    async touch(key, ttlMs, aboveMs) {
      const entry = entryOf(key)
      if (entry === undefined || entry.endsAt - now() <= aboveMs) return
      entry.endsAt = now() + ttlMs
      follower?.onChanged(key)
    },
    async replace(key, from, to) {
      const entry = entryOf(key)
      if (entry?.record !== from) return false
      entry.record = to
      follower?.onChanged(key)
      return true
    },
    async end(key, tombstone, ttlMs) {
      const entry = entryOf(key)
      if (entry === undefined || entry.record.startsWith(tombstoneMark)) return false
      entries.set(key, { record: tombstone, endsAt: now() + ttlMs })
      follower?.onChanged(key)
      return true
    },
    async indexSession(user, key, until) {
      lastNotedAt = Math.max(lastNotedAt + 1, now() * 1000)
      const keys = notes.get(user) ?? new Map<string, { at: number; until: number }>()
      notes.set(user, keys.set(key, { at: lastNotedAt, until }))
      return notesOf(user)
    },
    async indexEntriesOf(user) {
      return notesOf(user)
    },
    async sessionKeysOf(user) {
      return notesOf(user).map(({ key }) => key)
    },
    async unindex(user, keys) {
      for (const key of keys) notes.get(user)?.delete(key)
    },
    async addSignedIn(user, until) {
      const key = JSON.stringify(user)
      signedIn.set(key, { user, until: Math.max(until, signedIn.get(key)?.until ?? 0) })
    },
    async signedIn(max) {
      const present = [...signedIn.values()].filter(({ until }) => until > now())
      return present.slice(0, max).map(({ user }) => user)
    },
    // What one process has read last is the latest.
    async announceUsers() {
      return true
    },
    async epoch() {
      return epoch
    },
    async bumpEpoch() {
      epoch++
      follower?.onEpoch()
      return epoch
    },
    async confirmEnds() {},
    async restoreEpoch(wanted) {
      if (wanted <= epoch) return
      epoch = wanted
      follower?.onEpoch()
    },
    async lock(name, owner, ttlMs) {
      const held = locks.get(name)
      if (held !== undefined && held.endsAt > now()) return false
      locks.set(name, { owner, endsAt: now() + ttlMs })
      return true
    },
    async fence(name, owner, ttlMs) {
      const time = now()
      const held = locks.get(name)
      if (held === undefined || held.owner !== owner || held.endsAt <= time) return undefined
      held.endsAt = time + ttlMs
      const before = fences.get(name)
      const isKnown = before !== undefined && before.endsAt > time
      if (isKnown && before.owner === owner) return { number: before.number, isContested: false }
      const number = (lastFence = Math.max(lastFence + 1, time * 1000))
      if (isKnown) return { number, isContested: true }
      fences.set(name, { owner, number, endsAt: time + contestedMs })
      return { number, isContested: false }
    },
    async unlock(name, owner, isSettled = true) {
      if (locks.get(name)?.owner !== owner) return
      locks.delete(name)
      if (isSettled) fences.delete(name)
    },
    follow(given) {
      follower = given
      given.onUp()
    },
    async ping() {
      return true
    },
    async close() {
      clearInterval(sweep)
      clearInterval(alive)
      entries.clear()
    }
  }
}
