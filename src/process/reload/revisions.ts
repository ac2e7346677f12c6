/** The last ten configs that ran, to go back to. In memory: after a restart the files say what runs. */
import type { Config } from '../../config/schema/config.ts'

export interface Revision {
  /** That of the generation it became. */
  readonly number: number
  readonly at: string
  readonly by: string
  /** What was different from the one before, in words. */
  readonly changes: readonly string[]
  /** The revision whose config this is once more. */
  readonly of?: number
  /** Whether an operator named that revision, instead of going back step by step. */
  readonly named?: boolean
  readonly config: Config
}

export interface Revisions {
  readonly add: (revision: Omit<Revision, 'at'>) => void
  /**
   * The one of this number. Without a number: the one before that which runs, or what ran before
   * where an operator named the one that runs.
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
      // Going back twice goes back two steps, not to and fro.
      const from = running?.of ?? running?.number ?? 0
      return all.find(revision => revision.of === undefined && revision.number < from)
    },
    all: () => all
  }
}
