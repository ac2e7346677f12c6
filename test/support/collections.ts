/** A process that collects three times of each kind: it tells how often that was reported. */
import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { afterFullCollections } from '../../src/process/server/v8-tuning.ts'

const collect = globalThis.gc as unknown as (options: { readonly type: 'major' | 'minor' }) => void
const events = new EventTarget()
let count = 0
afterFullCollections(() => {
  count++
  events.dispatchEvent(new Event('full'))
})
for (let index = 0; index < 3; index++) {
  collect({ type: 'minor' })
  // Reports come with the turns of the event loop.
  await wait(10)
}
const young = count
for (let index = 0; index < 3; index++) {
  const reported = once(events, 'full')
  collect({ type: 'major' })
  await reported
}
process.send?.({ young, full: count - young })
process.disconnect?.()
