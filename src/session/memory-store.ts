/** The embedded session store: one process, gone with it. */
import type { SessionStore } from './session.ts'
import { epitaphMark } from './session.ts'

interface Entry { record: string, endsAt: number }

const sweepEveryMs = 60_000

export function createMemoryStore (now: () => number = Date.now): SessionStore {
  const entries = new Map<string, Entry>()
  const sweep = setInterval(() => {
    const time = now()
    for (const [key, { endsAt }] of entries) if (endsAt <= time) entries.delete(key)
  }, sweepEveryMs)
  sweep.unref()
  const alive = (key: string) => {
    const entry = entries.get(key)
    if (entry !== undefined && entry.endsAt > now()) return entry
    entries.delete(key)
    return undefined
  }

  return {
    async create (key, record, ttlMs) {
      if (alive(key) !== undefined) throw new Error('a session with this id is there already')
      entries.set(key, { record, endsAt: now() + ttlMs })
    },
    async read (key) {
      const entry = alive(key)
      return entry && { record: entry.record, ttlMs: entry.endsAt - now() }
    },
    async touch (key, ttlMs) {
      const entry = alive(key)
      if (entry !== undefined) entry.endsAt = now() + ttlMs
    },
    async end (key, epitaph, ttlMs) {
      const entry = alive(key)
      if (entry === undefined || entry.record.startsWith(epitaphMark)) return false
      entries.set(key, { record: epitaph, endsAt: now() + ttlMs })
      return true
    },
    async ping () { return true },
    async close () {
      clearInterval(sweep)
      entries.clear()
    }
  }
}
