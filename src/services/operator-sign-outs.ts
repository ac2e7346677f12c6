/** How often each operator has signed out: a cookie of before opens nothing. */

export type SignOuts = ReturnType<typeof createSignOuts>

export function createSignOuts() {
  const counts = new Map<string, number>()
  const of = (operator: string): number => counts.get(operator) ?? 0
  return {
    of,
    add: (operator: string): void => void counts.set(operator, of(operator) + 1),
    /** For a script of Redis: counts and operators by turns. */
    told: (): Array<string | number> =>
      [...counts].flatMap(([operator, count]) => [count, operator]),
    /** @param told operators and counts by turns, as Redis has them */
    take: (told: readonly string[]): void => {
      for (let index = 0; index < told.length; index += 2) {
        const operator = told[index] ?? ''
        counts.set(operator, Math.max(of(operator), Number(told[index + 1])))
      }
    }
  }
}
