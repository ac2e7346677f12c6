/** Every emitter is adopted here: without an `error` listener its first error ends the process. */

interface Emitter {
  /** `never`, since some declare only their own events. */
  on: (event: never, listener: never) => unknown
}

/** @param onError gets errors that no other listener takes, such as those after its end */
export function adopt<T extends Emitter>(emitter: T, onError = (_error: Error) => {}): T {
  emitter.on('error' as never, onError as never)
  return emitter
}
