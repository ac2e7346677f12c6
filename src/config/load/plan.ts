/** What would change between two configs, and which of it is a risk: as operators are told. */
import { differences } from './differences.ts'
import type { Config } from '../schema/config.ts'
import { risksOf } from './risks.ts'

export interface PlannedChange {
  readonly file: string
  readonly path: string
  /** For people; never a secret's value. */
  readonly text: string
  /** Whether it takes a restart; others are live. */
  readonly restart: boolean
}

export interface Plan {
  readonly changes: readonly PlannedChange[]
  readonly risks: readonly string[]
}

/** @param balancerMs how long whatever stands before the gateway waits for an answer */
export function comparePlan(before: Config, after: Config, balancerMs: number): Plan {
  const changes = differences(before, after).map(({ file, path, text }) => ({
    file,
    path: path.join('.'),
    text,
    restart: file === 'gateway'
  }))
  return { changes, risks: risksOf(before, after, balancerMs) }
}
