/** The time-outs of a response's body, as lines of the decision `timeouts`. */
import { inUnits } from '../../config/schema/primitives.ts'
import type { TimeOutOverrides, TimeOuts } from '../../proxy/time-outs.ts'
import type { Decision, Location } from './decision.ts'

/** @param at the place of a key: the route's own, or its upstream's */
export function bodyTimeOutLines(
  { streamIdleMs, totalMs }: TimeOuts,
  at: (key: keyof TimeOutOverrides) => Location
): NonNullable<Decision['lines']> {
  const ms = (value: number) => inUnits('x-duration', value)
  return [
    { text: `${ms(streamIdleMs)} for a silent event stream`, at: at('streamIdle') },
    { text: `${ms(totalMs)} to the last byte`, at: at('totalTimeout') }
  ]
}
