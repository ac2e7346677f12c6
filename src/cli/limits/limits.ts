/** `limits`: numbers for limits, from past use and logs. */
import type { Invocation } from '../command.ts'
import { resetCaller, showCaller } from './caller.ts'
import { simulate, simulateOptions } from './simulate.ts'
import { suggest } from './suggest.ts'

export async function limits({
  config,
  gateway,
  rest: [what, caller = ''],
  values,
  json,
  io
}: Invocation): Promise<number> {
  if (what === 'simulate') return await simulate(simulateOptions(config, values, json), io)
  if (what === 'suggest') return await suggest(gateway, values['since'], { json, io })
  if (what === 'show') return await showCaller(gateway, caller, { json, io })
  return await resetCaller(gateway, caller, { json, io })
}
