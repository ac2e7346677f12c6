/** How often each operator has signed out: a cookie of before opens nothing. */

/** Of operators; a few are usual. */
const max = 1000

export type SignOuts = ReturnType<typeof createSignOuts>

export function createSignOuts() {
  const counts = new Map<string, number>()
  const raise = (operator: string, count: number) => {
    if (count <= (counts.get(operator) ?? 0)) return
    // A count that rises becomes the last one: the first gives way.
    counts.delete(operator)
    counts.set(operator, count)
    const [oldest = ''] = counts.keys()
    if (counts.size > max) counts.delete(oldest)
  }
  return {
    of: (operator: string): number => counts.get(operator) ?? 0,
    add: (operator: string): void => raise(operator, (counts.get(operator) ?? 0) + 1),
    /** For a script of Redis: counts and operators by turns. */
    told: (): Array<string | number> =>
      [...counts].flatMap(([operator, count]) => [count, operator]),
    /** @param told operators and counts by turns, as Redis has them */
    take: (told: readonly string[]): void => {
      for (let index = 0; index < told.length; index += 2) {
        raise(told[index] ?? '', Number(told[index + 1]))
      }
    }
  }
}
