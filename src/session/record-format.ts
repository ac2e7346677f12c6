/** The form of records in the store: `1SEAL`. What does not begin so is no session. */
import { parseRecord, type RecordContent, writeRecord } from './record.ts'
import type { Seal } from './seal.ts'

const version = '1'

export interface RecordFormat {
  /** @param key the record's key in the store */
  readonly close: (key: string, content: RecordContent) => string
  /** @returns undefined for what is damaged, none of ours, or sealed with another secret */
  readonly open: (key: string, stored: string) => RecordContent | undefined
}

export function createRecordFormat(seal: Seal): RecordFormat {
  return {
    close: (key, content) => version + seal.close(key, writeRecord(content)),
    open: (key, stored) => {
      if (!stored.startsWith(version)) return undefined
      const text = seal.open(key, stored.slice(version.length))
      return text === undefined ? undefined : parseRecord(text)
    }
  }
}
