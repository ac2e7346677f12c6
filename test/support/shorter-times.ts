/** Makes long waits of the gateway short, where it runs in the process of the test. */

/** @param shorter milliseconds by those that the gateway asks for */
export function shorterTimes(
  cleanUp: (undo: () => unknown) => void,
  shorter: Readonly<Record<number, number>>
): void {
  const { setTimeout: usual } = globalThis
  const short = (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]) =>
    usual(run, shorter[ms] ?? ms, ...args)
  globalThis.setTimeout = Object.assign(short, usual)
  cleanUp(() => (globalThis.setTimeout = usual))
}
