/** The changes between two configs and their risks, as text for operators. */
import { configDifferences, needsRestart } from './differences.ts'
import type { Config } from '../schema/config.ts'
import { risksOf } from './risks.ts'

export interface PlannedChange {
  readonly file: string
  readonly path: string
  /** For operators; never contains a secret's value. */
  readonly text: string
  /** Whether the change needs a restart; others take effect at once. */
  readonly restart: boolean
}

export interface Plan {
  readonly changes: readonly PlannedChange[]
  readonly risks: readonly string[]
}

/** @param balancerMs the response time-out of the load balancer in front of the gateway */
export function comparePlan(before: Config, after: Config, balancerMs: number): Plan {
  const changes = configDifferences(before, after).map(difference => ({
    file: difference.file,
    path: difference.path.join('.'),
    text: difference.text,
    restart: needsRestart(difference)
  }))
  return { changes, risks: risksOf(before, after, balancerMs) }
}
