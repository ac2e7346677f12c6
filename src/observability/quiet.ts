/** Each request may meet the same fault. @returns runs what it gets, at most once in the time */
export function createQuiet(quietMs = 60_000): (report: () => void) => void {
  let quietUntil = -Infinity
  return report => {
    const now = performance.now()
    if (now < quietUntil) return
    quietUntil = now + quietMs
    report()
  }
}
