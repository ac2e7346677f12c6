/** The time-outs of a response's body, as lines of the decision `timeouts`. */
import { inUnits } from '../../config/schema/primitives.ts'
import type { TimeOutOverrides, TimeOuts } from '../../proxy/time-outs.ts'
import type { Decision, Location } from './decision.ts'

/** @param at the place of a key: the route's own, or its upstream's */
export function bodyTimeOutLines(
  { streamIdleMs, totalMs, minBytesPerSecond, ratePeriodMs }: TimeOuts,
  at: (key: keyof TimeOutOverrides) => Location
): NonNullable<Decision['lines']> {
  const ms = (value: number) => inUnits('x-duration', value)
  const lines = [{ text: `${ms(streamIdleMs)} for a silent event stream`, at: at('streamIdle') }]
  if (minBytesPerSecond > 0) {
    const rate = inUnits('x-size', minBytesPerSecond)
    const text = `at least ${rate} a second of a body, averaged over ${ms(ratePeriodMs)}`
    lines.push({ text, at: at('minRate') })
  }
  if (totalMs !== undefined) {
    lines.push({ text: `${ms(totalMs)} to the last byte`, at: at('totalTimeout') })
  }
  return lines
}
