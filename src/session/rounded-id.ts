/** Finds sessions of a version that rounded ids of back-ends' users, which made two users one. */
import type { EndReason, Session } from './record.ts'

const decimal = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i
/** The source names of such a version for back-ends begin so. */
const upstreamSource = 'upstream-login:'

/** Whether a session's user may not be the one who signed in. */
export function hasRoundedId({ identity: { id }, source, recordVersion }: Session): boolean {
  if (recordVersion !== undefined || !source.startsWith(upstreamSource)) return false
  return decimal.test(id) && Math.abs(Number(id)) > Number.MAX_SAFE_INTEGER
}

type EndKeys = (keys: readonly string[], reason: EndReason) => Promise<number>

/** Ends sessions in the store too, so that a replica of a former version takes them no longer. */
export function countEnded(endKeys: EndKeys, onEnded: (count: number) => void): EndKeys {
  let count = 0
  return async (keys, reason) => {
    const ended = await endKeys(keys, reason)
    count += ended
    if (ended > 0) onEnded(count)
    return ended
  }
}
