/** Sessions that were found over by their own time, each once: browsers may ask for them again. */
import { recentlyUsed } from '../bounded-map.ts'
import type { Evaluation } from './evaluate.ts'
import type { EndReason } from './record.ts'

const maxKeys = 10_000

/** @param onExpired called for the first lookup after the end, in this process */
export function createExpiries(onExpired: (reason: EndReason) => void) {
  const seen = recentlyUsed<true>(maxKeys)
  return function noteExpiry(key: string, evaluation: Evaluation): void {
    if (!('ended' in evaluation)) return
    const { ended } = evaluation
    if ((ended !== 'idle' && ended !== 'absolute') || seen.get(key) !== undefined) return
    seen.set(key, true)
    onExpired(ended)
  }
}
