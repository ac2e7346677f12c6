/** How V8 looks after memory: its defaults are for programs that keep what they make, and hardly any of a proxy's outlives its request. */
import { constants, type PerformanceEntry, PerformanceObserver } from 'node:perf_hooks'
import { setFlagsFromString } from 'node:v8'

/**
 * V8 makes whatever outlived a few collections old from the start. Requests do while memory is still small, and from
 * then on each is kept, with all that it points to, until the next full collection: twice the memory, a tenth more CPU time.
 */
const keepsRequestsYoung = '--no-allocation-site-pretenuring'

/**
 * A young collection finds little alive, and by default wakes other threads to look for it: by itself it is done in two
 * thirds of the time.
 */
const collectsAlone = '--no-parallel-scavenge'

/**
 * The buffers of bodies in transit stand outside the heap and are freed with what points to them: by default after 128 MB
 * of them, so that a full collection every 30 MB comes first. After 8 MB a quick one, of young objects, frees them: a third
 * less CPU time for a long transfer. Node 26 has no such flag.
 */
const freesBuffersSoon = '--scavenger-max-new-space-capacity-mb=2'

/**
 * By how many per cent old objects may grow before a full collection. V8 lets them grow to four times as much, which is
 * all garbage here and is never given back; a third keeps memory small for a collection every few seconds. Where large
 * bodies are shaped that would be several in a second.
 */
const growth = { least: 30, most: 300, rareMs: 3000, oftenMs: 500 }

/** Node's types leave out what it tells of a collection. */
export type Collection = PerformanceEntry & { readonly detail: { readonly kind: number } }

/** @param sinceMs from the start of one full collection to that of the next */
export function nextGrowth(percent: number, sinceMs: number): number {
  if (sinceMs < growth.oftenMs) return Math.min(growth.most, percent * 2)
  return sinceMs > growth.rareMs ? Math.max(growth.least, percent / 2) : percent
}

/** For a process that serves; from now on and for good. */
export function tuneV8(): void {
  setFlagsFromString(keepsRequestsYoung)
  setFlagsFromString(collectsAlone)
  if (process.versions.v8.startsWith('13.')) setFlagsFromString(freesBuffersSoon)
  let percent = growth.least
  let lastAt = -Infinity
  setGrowth(percent)
  new PerformanceObserver(list => {
    for (const { detail, startTime } of list.getEntries() as Collection[]) {
      if (detail.kind !== constants.NODE_PERFORMANCE_GC_MAJOR) continue
      const next = nextGrowth(percent, startTime - lastAt)
      lastAt = startTime
      if (next === percent) continue
      percent = next
      setGrowth(percent)
    }
  }).observe({ entryTypes: ['gc'] })
}

function setGrowth(percent: number) {
  return setFlagsFromString(`--heap-growing-percent=${Math.round(percent)}`)
}
