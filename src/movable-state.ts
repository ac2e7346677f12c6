/** State in memory that another process can take over, entry by entry. */
import type { BoundedMap } from './bounded-map.ts'

/** The value is one that JSON can hold. */
export type Entry = readonly [table: string, key: string, value: unknown]

export interface Movable {
  /** All that is in it. */
  readonly entries: () => Iterable<Entry>
  readonly load: (entry: Entry) => void
  /**
   * Called once the state is in another process, where it changes without a sign from now on, and
   * when it came back.
   */
  readonly onMoved?: (isAway: boolean) => void
}

/** A map, or what can be read and written like one. */
interface Table {
  entries(): Iterable<readonly [string, unknown]>
  set(key: string, value: unknown): unknown
}

export function movableTables(tables: Readonly<Record<string, Table>>): Movable {
  return {
    *entries() {
      for (const [name, table] of Object.entries(tables)) {
        for (const [key, value] of table.entries()) yield [name, key, value]
      }
    },
    load: ([name, key, value]) => {
      // A table of another version, which this one does without.
      if (!Object.hasOwn(tables, name)) return
      const { [name]: table } = tables
      table?.set(key, value)
    }
  }
}

/** A single value. */
export function movableValue<T>(read: () => T, write: (value: T) => void): Table {
  return { entries: () => [['', read()]], set: (_, value: T) => write(value) }
}

/** A bounded map, so that its order is kept. */
export function boundedTable<V extends {}>(map: BoundedMap<V>): Table {
  return { entries: () => map.oldestFirst(), set: (key, value: V) => map.set(key, value) }
}
