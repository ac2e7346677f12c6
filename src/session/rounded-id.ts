/** Sessions of a version that rounded the ids of back-ends' users: two users had become one. */
import type { Session } from './record.ts'

const decimal = /^-?\d+(?:\.\d+)?(?:e[+-]?\d+)?$/i
/** The name that such a version gave every source that asks a back-end. */
const upstreamSource = 'upstream-login:'

/** Whether a session's user may be another one than who signed in. */
export function hasRoundedId ({ identity: { id }, source, recordVersion }: Session): boolean {
  if (recordVersion !== undefined || !source.startsWith(upstreamSource)) return false
  return decimal.test(id) && Math.abs(Number(id)) > Number.MAX_SAFE_INTEGER
}
