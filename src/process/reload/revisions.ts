/**
 * The last ten configs that ran, for rollbacks. In memory only: a restart runs the config of the
 * files.
 */
import type { Config } from '../../config/schema/config.ts'

export interface Revision {
  /** The number of its generation. */
  readonly number: number
  readonly at: string
  readonly by: string
  /** The changes from the revision before, in words. */
  readonly changes: readonly string[]
  /** After a rollback: the revision whose config this is. */
  readonly of?: number
  /** Whether the operator gave that revision's number, instead of going back by one step. */
  readonly named?: boolean
  readonly config: Config
}

export interface Revisions {
  readonly add: (revision: Omit<Revision, 'at'>) => void
  /**
   * The revision of this number. Without a number: the one before the running one, or the one that
   * ran last if the operator gave the running one's number.
   */
  readonly find: (number: number | undefined) => Revision | undefined
  /** Newest first; the first one runs. */
  readonly all: () => readonly Revision[]
}

const maxRevisions = 10

export function createRevisions(first: Config): Revisions {
  const all: Revision[] = [
    { number: 1, at: new Date().toISOString(), by: 'start', changes: [], config: first }
  ]
  return {
    add: revision => {
      all.unshift({ ...revision, at: new Date().toISOString() })
      all.length = Math.min(all.length, maxRevisions)
    },
    find: number => {
      const [running] = all
      if (number !== undefined) return all.find(revision => revision.number === number)
      if (running?.named === true) return all[1]
      // Two rollbacks go back two steps, instead of undoing each other.
      const from = running?.of ?? running?.number ?? 0
      return all.find(revision => revision.of === undefined && revision.number < from)
    },
    all: () => all
  }
}
