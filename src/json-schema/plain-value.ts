/** A response's value as its reader gets it: numbers that keep their digits are numbers. */

export const isRawNumber = (value: object): boolean =>
  (JSON as unknown as { isRawJSON: (value: object) => boolean }).isRawJSON(value)

/** Raw numbers become numbers. Only used for responses that seem to deviate, or that hold some. */
export function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value) ?? 'null')
}

/** Whether a value, or anything in it, is a raw number. Not recursive: a value may be deep. */
export function holdsRawNumber(value: unknown): boolean {
  const open = [value]
  while (open.length > 0) {
    const next = open.pop()
    if (typeof next !== 'object' || next === null) continue
    if (isRawNumber(next)) return true
    for (const inner of Array.isArray(next) ? next : Object.values(next)) {
      if (typeof inner === 'object' && inner !== null) open.push(inner)
    }
  }
  return false
}
