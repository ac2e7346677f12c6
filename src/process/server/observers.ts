/** The facts about a process, for operators, by kind. The primary asks each worker. */

export interface Observation {
  /** Number of the worker; undefined where there is one process only. */
  readonly worker?: number
  readonly pid: number
  readonly value: unknown
}

export type Observe = (kind: string, query: unknown) => Promise<Observation[]>

/** @returns a value that can be cloned from one process to another */
type Observer = (query: unknown) => unknown

export class Observers {
  readonly #byKind = new Map<string, Observer>()

  /** Replaces the observer of this kind, if there is one. */
  serve(kind: string, observer: Observer): void {
    this.#byKind.set(kind, observer)
  }

  /** @throws where nothing serves the kind */
  async ask(kind: string, query: unknown): Promise<Observation> {
    const observer = this.#byKind.get(kind)
    if (observer === undefined) throw new Error(`nothing to observe of kind "${kind}"`)
    return { pid: process.pid, value: await observer(query) }
  }
}
