/**
 * Formats of stored session records, and which versions of the gateway read them.
 *
 * - 1: `SEAL`, as the first releases write it. They read nothing else.
 * - 2: `2.SEAL`. The number stands outside the seal and is bound to it, so that a version which
 *   does not know a format can tell it from damage. Every later format begins with its number too.
 * - 3: `3.SEAL`, with an idle clock of its own beside it: use of the session changes the clock
 *   alone, and is announced to nobody. In formats 1 and 2 the record's time to live is the clock.
 *
 * A version reads its own format and those before. It writes the oldest one until
 * `session.records` says that every replica reads a newer one. A record keeps the place of its idle
 * clock for life: format 3 is never rewritten as an older one, nor an older one as format 3.
 */
import { parseRecord, type RecordContent, writeRecord } from './record.ts'
import type { Seal } from './seal.ts'
import { isQuiet } from './store.ts'

export type RecordVersion = 1 | 2 | 3

export const newestRecordVersion: RecordVersion = 3

/** Why a stored record could not be read: it may be alive all the same. */
export type Unreadable =
  /** A newer version of the gateway wrote it. */
  | 'version'
  /** It was sealed with a secret that this process does not have. */
  | 'secret'

export type Opened =
  | RecordContent
  | { readonly unreadable: Unreadable }
  /** Damaged, or no record of ours. */
  | undefined

export interface RecordFormat {
  /**
   * @param key the record's key in the store
   * @param former the record that it takes the place of
   */
  readonly close: (key: string, content: RecordContent, former?: string) => string
  readonly open: (key: string, stored: string) => Opened
}

const numbered = /^(\d{1,4})\.[^.]*\./

/** @param writes the format of new records; all are read */
export function createRecordFormat(seal: Seal, writes: RecordVersion): RecordFormat {
  function versionAfter(former: string): RecordVersion {
    if (isQuiet(former)) return 3
    return writes === 3 ? 2 : writes
  }

  return {
    close: (key, content, former) => {
      const text = writeRecord(content)
      const version = former === undefined ? writes : versionAfter(former)
      return version === 1
        ? seal.close(key, text)
        : `${version}.${seal.close(`${version}:${key}`, text)}`
    },
    open: (key, stored) => {
      const version = Number(numbered.exec(stored)?.[1] ?? 1)
      if (version > newestRecordVersion) return { unreadable: 'version' }
      const isNumbered = version > 1
      const sealed = isNumbered ? stored.slice(2) : stored
      if (seal.isForeign(sealed)) return { unreadable: 'secret' }
      const text = seal.open(isNumbered ? `${version}:${key}` : key, sealed)
      return text === undefined ? undefined : parseRecord(text)
    }
  }
}
