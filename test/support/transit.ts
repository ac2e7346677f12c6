/** A process through which buffers go as bodies do: it tells how often they made V8 collect. */
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { setImmediate as turn } from 'node:timers/promises'
import { tuneV8 } from '../../src/process/server.ts'

/** Node's types have no `detail` of a collection. */
type Collection = PerformanceEntry & { readonly detail: { readonly kind: number } }

tuneV8()
const told = { major: 0, minor: 0 }
const count = (entries: readonly object[]) => {
  for (const {
    detail: { kind }
  } of entries as Collection[]) {
    if (kind === constants.NODE_PERFORMANCE_GC_MAJOR) told.major++
    if (kind === constants.NODE_PERFORMANCE_GC_MINOR) told.minor++
  }
}
const observer = new PerformanceObserver(list => count(list.getEntries()))
observer.observe({ entryTypes: ['gc'] })
for (let index = 0; index < 12_800; index++) {
  Buffer.allocUnsafeSlow(64 * 1024)
  await turn()
}
count(observer.takeRecords())
process.send?.(told)
process.disconnect?.()
