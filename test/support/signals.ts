/** Programs that start others end them too, when they are ended themselves. */
export function endOnSignals(cleanUp: () => Promise<unknown>): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void cleanUp().finally(() => process.exit(1)))
  }
}
