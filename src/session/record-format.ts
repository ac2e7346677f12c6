/**
 * Formats of stored session records, and which versions of the gateway read them.
 *
 * - 1: `SEAL`, as the first releases write it. They read nothing else.
 * - 2: `2.SEAL`. The number stands outside the seal and is bound to it, so that a version which
 *   does not know a format can tell it from damage. Every later format begins with its number too.
 *
 * A version reads its own format and the one before. It writes the older one until
 * `session.records` says that every replica reads the newer one.
 */
import { parseRecord, type RecordContent, writeRecord } from './record.ts'
import type { Seal } from './seal.ts'

export type RecordVersion = 1 | 2

export const newestRecordVersion: RecordVersion = 2

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
  /** @param key the record's key in the store */
  readonly close: (key: string, content: RecordContent) => string
  readonly open: (key: string, stored: string) => Opened
}

const numbered = /^(\d{1,4})\.[^.]*\./

/** @param writes the format of what is written; both are read */
export function createRecordFormat(seal: Seal, writes: RecordVersion): RecordFormat {
  return {
    close: (key, content) => {
      const text = writeRecord(content)
      return writes === 1 ? seal.close(key, text) : `2.${seal.close(`2:${key}`, text)}`
    },
    open: (key, stored) => {
      const version = Number(numbered.exec(stored)?.[1] ?? 1)
      if (version > newestRecordVersion) return { unreadable: 'version' }
      const sealed = version === 2 ? stored.slice(2) : stored
      if (seal.isForeign(sealed)) return { unreadable: 'secret' }
      const text = seal.open(version === 2 ? `2:${key}` : key, sealed)
      return text === undefined ? undefined : parseRecord(text)
    }
  }
}
