/** Errors that nothing caught: the state of the process is unknown then, so it ends. */
import type { Log } from '../services/services.ts'

interface Options {
  readonly log: Log
  /** Called once: takes no more requests, lets those in flight finish, ends the process. */
  readonly onFatal: () => void
}

export function endOnUncaught({ log, onFatal }: Options): void {
  let isEnding = false
  process.on('uncaughtException', (err: unknown, origin) => {
    const fields = { event: 'process.uncaught', err }
    log.fatal(fields, `internal error: ${origin}; the process ends`)
    if (!isEnding) onFatal()
    isEnding = true
  })
}
