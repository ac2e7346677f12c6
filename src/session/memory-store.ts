/** The embedded session store: for one process, lost with it. */
import { steadyNow } from '../steady-clock.ts'
import type { IdentityKey } from './identity-key.ts'
import type { SignedIn } from './record.ts'
import {
  contestedMs,
  type EpochStore,
  type Follower,
  type LockStore,
  type RecordStore,
  type SessionIndex,
  type SessionStore,
  StoreUnavailable,
  tombstoneMark,
  type UserStore
} from './store.ts'

type Now = () => number

/** A part of the store that drops expired entries. */
interface Swept {
  readonly sweep: () => void
}

const sweepEveryMs = 60_000
const heartbeatEveryMs = 250

export function createMemoryStore(now: Now = steadyNow): SessionStore {
  let follower: Follower | undefined
  const onChanged = (key: string) => follower?.onChanged(key)
  const { sweep: sweepRecords, clear, ...records } = createRecords(now, onChanged)
  const { sweep: sweepIndex, ...index } = createIndex(now)
  const { sweep: sweepUsers, ...users } = createUsers(now)
  const { sweep: sweepLocks, ...locks } = createLocks(now)
  const epoch = createEpoch(() => follower?.onEpoch())
  const sweeper = setInterval(() => {
    for (const sweep of [sweepRecords, sweepIndex, sweepUsers, sweepLocks]) sweep()
  }, sweepEveryMs)
  // In one process no announcement gets lost on the way.
  const heartbeat = setInterval(() => follower?.onHeartbeat(0), heartbeatEveryMs)
  sweeper.unref()
  heartbeat.unref()

  return {
    ...records,
    ...index,
    ...users,
    ...locks,
    ...epoch,
    // In one process its last state is the latest.
    async announceUsers() {
      return true
    },
    follow(next) {
      follower = next
      next.onUp()
    },
    async ping() {
      return true
    },
    async close() {
      clearInterval(sweeper)
      clearInterval(heartbeat)
      clear()
    }
  }
}

function createRecords(
  now: Now,
  onChanged: (key: string) => void
): RecordStore & Swept & { readonly clear: () => void } {
  /** `isUsed`: touched since the last touch after use. */
  const entries = new Map<string, { record: string; endsAt: number; isUsed: boolean }>()

  const entryOf = (key: string) => {
    const entry = entries.get(key)
    if (entry !== undefined && entry.endsAt > now()) return entry
    entries.delete(key)
    return undefined
  }
  const above = (key: string, aboveMs: number) => {
    const entry = entryOf(key)
    return entry !== undefined && entry.endsAt - now() > aboveMs ? entry : undefined
  }

  return {
    async create(key, record, ttlMs) {
      if (entryOf(key) !== undefined) {
        throw new StoreUnavailable(new Error('a session with this id exists already'))
      }
      entries.set(key, { record, endsAt: now() + ttlMs, isUsed: true })
      onChanged(key)
    },
    async read(key) {
      const entry = entryOf(key)
      return entry && { record: entry.record, ttlMs: entry.endsAt - now() }
    },
    async touch(key, ttlMs, aboveMs) {
      const entry = above(key, aboveMs)
      if (entry === undefined) return false
      Object.assign(entry, { endsAt: now() + ttlMs, isUsed: true })
      return true
    },
    async touchAfterUse(key, ttlMs, aboveMs) {
      const entry = above(key, aboveMs)
      if (entry?.isUsed !== true) return false
      Object.assign(entry, { endsAt: now() + ttlMs, isUsed: false })
      onChanged(key)
      return true
    },
    async replace(key, from, to) {
      const entry = entryOf(key)
      if (entry?.record !== from) return false
      entry.record = to
      onChanged(key)
      return true
    },
    async end(key, tombstone, ttlMs) {
      const entry = entryOf(key)
      if (entry === undefined || entry.record.startsWith(tombstoneMark)) return false
      entries.set(key, { record: tombstone, endsAt: now() + ttlMs, isUsed: true })
      onChanged(key)
      return true
    },
    sweep: () => deleteOver(entries, ({ endsAt }) => endsAt <= now()),
    clear: () => entries.clear()
  }
}

function createIndex(now: Now): SessionIndex & Swept {
  const users = new Map<IdentityKey, Map<string, { readonly at: number; readonly until: number }>>()
  let lastAt = 0

  const entriesOf = (user: IdentityKey) => {
    const entries = [...(users.get(user) ?? [])]
    return entries.flatMap(([key, { at, until }]) => (until > now() ? [{ key, at }] : []))
  }

  return {
    async indexSession(user, key, until) {
      lastAt = Math.max(lastAt + 1, now() * 1000)
      const keys = users.get(user) ?? new Map<string, { at: number; until: number }>()
      users.set(user, keys.set(key, { at: lastAt, until }))
      return entriesOf(user)
    },
    async indexEntriesOf(user) {
      return entriesOf(user)
    },
    async sessionKeysOf(user) {
      return entriesOf(user).map(({ key }) => key)
    },
    async unindex(user, keys) {
      for (const key of keys) users.get(user)?.delete(key)
    },
    sweep: () => {
      for (const keys of users.values()) deleteOver(keys, ({ until }) => until <= now())
      deleteOver(users, keys => keys.size === 0)
    }
  }
}

function createUsers(now: Now): Omit<UserStore, 'announceUsers'> & Swept {
  const signedIn = new Map<string, { readonly user: SignedIn; readonly until: number }>()
  return {
    async addSignedIn(user, until) {
      const key = JSON.stringify(user)
      signedIn.set(key, { user, until: Math.max(until, signedIn.get(key)?.until ?? 0) })
    },
    async signedIn(max) {
      const present = [...signedIn.values()].filter(({ until }) => until > now())
      return present.slice(0, max).map(({ user }) => user)
    },
    async sampleSignedIn(max) {
      const present = [...signedIn.values()].filter(({ until }) => until > now())
      const sample = present.length <= max ? present : randomOf(present, max)
      return { total: present.length, users: sample.map(({ user }) => user) }
    },
    sweep: () => deleteOver(signedIn, ({ until }) => until <= now())
  }
}

function createEpoch(onEpoch: () => void): EpochStore {
  let epoch = 0
  return {
    async confirmEnds() {},
    async epoch() {
      return epoch
    },
    async bumpEpoch(above = 0) {
      epoch = Math.max(epoch, above) + 1
      onEpoch()
      return epoch
    },
    async restoreEpoch(wanted) {
      if (wanted <= epoch) return
      epoch = wanted
      onEpoch()
    }
  }
}

function createLocks(now: Now): LockStore & Swept {
  const locks = new Map<string, { owner: string; endsAt: number }>()
  const fences = new Map<string, { owner: string; number: number; endsAt: number }>()
  let lastNumber = 0
  return {
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
      const isThere = before !== undefined && before.endsAt > time
      if (isThere && before.owner === owner) return { number: before.number, isContested: false }
      lastNumber = Math.max(lastNumber + 1, time * 1000)
      if (isThere) return { number: lastNumber, isContested: true }
      fences.set(name, { owner, number: lastNumber, endsAt: time + contestedMs })
      return { number: lastNumber, isContested: false }
    },
    async unlock(name, owner, isSettled = true) {
      if (locks.get(name)?.owner !== owner) return
      locks.delete(name)
      if (isSettled) fences.delete(name)
    },
    sweep: () => {
      deleteOver(fences, ({ endsAt }) => endsAt <= now())
      deleteOver(locks, ({ endsAt }) => endsAt <= now())
    }
  }
}

/** So many members, each no more than once. Changes the order of the array. */
function randomOf<T>(all: T[], count: number): T[] {
  for (let index = 0; index < count; index++) {
    const other = index + Math.floor(Math.random() * (all.length - index))
    ;[all[index], all[other]] = [all[other] as T, all[index] as T]
  }
  return all.slice(0, count)
}

function deleteOver<K, V>(entries: Map<K, V>, isOver: (value: V) => boolean): void {
  for (const [key, value] of entries) if (isOver(value)) entries.delete(key)
}
