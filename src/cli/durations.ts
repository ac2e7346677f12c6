import { amountOf } from '../config/schema/primitives.ts'
import { UsageError } from './command.ts'

export function forMs(written: string | undefined): number | undefined {
  if (written === undefined) return undefined
  const ms = amountOf('x-duration', written)
  if (Number.isFinite(ms)) return ms
  throw new UsageError(`"${written}" is no duration such as 30m, 2h or 7d.`)
}

/** A time as it is written; of a duration, the time that is so far from now. */
export function timeOf(written: string | undefined): string | undefined {
  const ms = amountOf('x-duration', String(written))
  return Number.isFinite(ms) ? new Date(Date.now() + ms).toISOString() : written
}
