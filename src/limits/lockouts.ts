/** Failures of sign-in: taken before a password is looked at, since guesses may come at once. */
import { BoundedMap } from '../bounded-map.ts'
import { steadyClock } from '../steady-clock.ts'
import { fullAfter, look, type Rate, roomMs } from './gcra.ts'

export interface Bucket {
  /** The kind of bucket, a blank, and its owner: `account alice`. */
  readonly key: string
  readonly rate: Rate
}

export interface Taken {
  /** Otherwise one is used up, and none was taken from. */
  readonly isTaken: boolean
  /** For each bucket, until one more failure is free; 0 where one is. */
  readonly waitMs: readonly number[]
  /** Counted in this process, since Redis did not answer. */
  readonly isLocal?: true
  /** Redis may have counted it too, and its answer was lost. */
  readonly mayBeShared?: boolean
}

/** Begins the keys of guesses at the operators' page: they lock nobody out of the console. */
export const operatorsApart = 'ops-'

/** The account and address in a key such as `account alice`; the id of a known browser is left out. */
export function partsOf({ key }: Pick<Bucket, 'key'>) {
  const isOfOperators = key.startsWith(operatorsApart)
  const own = isOfOperators ? key.slice(operatorsApart.length) : key
  const [kind = '', first = '', second = ''] = own.split(' ')
  const named = kind === 'address' ? { address: first } : { account: first }
  const both = kind === 'accountAndAddress' ? { ...named, address: second } : named
  const of: { readonly account?: string; readonly address?: string } = both
  return { isOfOperators, kind, of }
}

export interface Lock {
  readonly key: string
  readonly waitMs: number
}

export interface Lockouts {
  /** Takes a failure from each, unless one is used up. */
  readonly take: (buckets: readonly Bucket[]) => Promise<Taken>
  /** @param taken what `take` said of these buckets, or others with them */
  readonly giveBack: (buckets: readonly Bucket[], taken: Taken) => Promise<void>
  readonly list: () => Promise<Lock[]>
  readonly lift: (keys: readonly string[]) => Promise<void>
}

interface Failures {
  readonly rate: Rate
  readonly full: number
}

/** Of made-up names: so many are not tried while a lock lasts. */
const maxKeys = 200_000

export function createMemoryLockouts(): Lockouts & { readonly clear: () => void } {
  const failures = new BoundedMap<Failures>(maxKeys)
  /** No fuller than its size: the rate may have changed. */
  const fullOf = ({ key, rate }: Bucket, now: number) =>
    Math.min(failures.peek(key)?.full ?? 0, now + roomMs(rate))
  /** Adds so many failures to each bucket, unless one of them has no room for more. */
  const count = (buckets: readonly Bucket[], failed: 1 | -1): Taken => {
    const now = steadyClock.now()
    const isFull = (bucket: Bucket) => look(bucket.rate, fullOf(bucket, now), now).exceeded
    const isTaken = failed < 0 || !buckets.some(isFull)
    const waitMs = buckets.map(bucket => {
      const { key, rate } = bucket
      const full = fullAfter(rate, fullOf(bucket, now), isTaken ? failed : 0, now)
      if (full > now) failures.set(key, { rate, full })
      else failures.delete(key)
      return look(rate, full, now).retryMs
    })
    return { isTaken, waitMs }
  }

  return {
    take: async buckets => count(buckets, 1),
    giveBack: async buckets => void count(buckets, -1),
    list: async () => {
      const now = steadyClock.now()
      return Array.from(failures.entries(), ([key, { rate, full }]) => ({
        key,
        waitMs: look(rate, full, now).retryMs
      }))
        .filter(({ waitMs }) => waitMs > 0)
        .toSorted((a, b) => a.waitMs - b.waitMs)
    },
    lift: async keys => keys.forEach(key => failures.delete(key)),
    clear: () => failures.clear()
  }
}
