/** The last ten configs that ran, to go back to. In memory: after a restart the files say what runs. */
import type { Config } from './config/load.ts'

export interface Revision {
  /** That of the generation it became. */
  readonly number: number
  readonly at: string
  readonly by: string
  /** What was different from the one before, in words. */
  readonly changes: readonly string[]
  /** The revision whose config this is once more. */
  readonly of?: number
  readonly config: Config
}

export interface Revisions {
  readonly add: (revision: Omit<Revision, 'at'>) => void
  /** The one of this number; the one before that which runs, without. */
  readonly find: (number: number | undefined) => Revision | undefined
  /** Newest first; the first one runs. */
  readonly all: () => readonly Revision[]
}

const most = 10

export function createRevisions (first: Config): Revisions {
  const all: Revision[] = [{ number: 1, at: new Date().toISOString(), by: 'start', changes: [], config: first }]
  return {
    add: revision => {
      all.unshift({ ...revision, at: new Date().toISOString() })
      all.length = Math.min(all.length, most)
    },
    find: number => {
      const [running] = all
      // Going back twice goes back two steps, not to and fro.
      const from = running?.of ?? running?.number ?? 0
      return number === undefined ? all.find(revision => revision.of === undefined && revision.number < from) : all.find(revision => revision.number === number)
    },
    all: () => all
  }
}
