const quietMs = 60_000

/** Each request may meet the same fault. @returns runs what it gets at most once a minute */
export function createQuiet(): (report: () => void) => void {
  let quietUntil = -Infinity
  return report => {
    const now = performance.now()
    if (now < quietUntil) return
    quietUntil = now + quietMs
    report()
  }
}
