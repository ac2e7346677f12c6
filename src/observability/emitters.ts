/**
 * Every stream and emitter is adopted here in the expression that makes it: without an `error`
 * listener its first error ends the process. `npm run check` refuses any that is not adopted.
 */
import type { Readable, Writable } from 'node:stream'

/**
 * An emitter of `error`: streams, sockets, servers, workers, child processes, watchers, clients.
 */
interface Emitter {
  /** `never`, since some declare only their own events. */
  on: (event: never, listener: never) => unknown
}

/**
 * Gives an emitter its first `error` listener.
 * @param onError what becomes of errors that no other listener takes, such as those after its end
 */
export function adopt<T extends Emitter>(emitter: T, onError: (error: Error) => void = ignore): T {
  emitter.on('error' as never, onError as never)
  return emitter
}

/** As `from.pipe(to)`, but an error of `from`, or its early end, destroys `to` too. */
export function pipe<T extends Writable>(from: Readable, to: T): T {
  adopt(from, error => to.destroy(error))
  from.once('close', () => {
    if (!from.readableEnded) to.destroy()
  })
  return from.pipe(adopt(to))
}

function ignore(): void {}
