/**
 * State of a gateway without Redis: sessions, limits, lockouts, made-up secrets. At a restart it
 * goes to the new process; the calls of this one follow it there, so that there is one truth.
 */
import type { Entry, Movable } from '../movable-state.ts'
import { createMemoryStore } from '../session/memory-store.ts'
import { type SessionStore, StoreUnavailable } from '../session/store.ts'

/** A call of a store in another process; parameters and result are such that JSON can hold. */
export type CallStore = (
  store: string,
  method: string,
  parameters: readonly unknown[]
) => Promise<unknown>

/** Secrets that this gateway has made up, by name. */
export type Secrets = Readonly<Record<string, string>>

/** Both may be there: a restart may begin while the process before still drains. */
type OtherProcess = 'predecessor' | 'successor'

type Methods = Record<string, (...parameters: unknown[]) => unknown>

interface Place {
  readonly state: Movable
  /** All methods of the store, as they run in this process. */
  readonly methods: Methods
}

export class Handover {
  readonly #places = new Map<string, Place>()
  readonly #secrets = new Map<string, string>()
  /** Undefined while the state is in this process. */
  #elsewhere: Promise<CallStore> | undefined
  #settle = Promise.withResolvers<CallStore>()
  readonly #others = new Set<OtherProcess>()

  constructor(secrets: Secrets = {}) {
    for (const [name, secret] of Object.entries(secrets)) this.#secrets.set(name, secret)
  }

  /** From now on another process uses the same state. */
  joined(other: OtherProcess): void {
    this.#others.add(other)
  }

  left(other: OtherProcess): void {
    this.#others.delete(other)
  }

  /** Whether no other process uses the same state. */
  get isAlone(): boolean {
    return this.#others.size === 0
  }

  /** The secret of the process before, else one that is made up now. */
  secret(name: string, make: () => string): string {
    const secret = this.#secrets.get(name) ?? make()
    this.#secrets.set(name, secret)
    return secret
  }

  get secrets(): Secrets {
    return Object.fromEntries(this.#secrets)
  }

  /**
   * The same store, whose asynchronous methods go to the process that has its state.
   * @param local names the other methods
   */
  movable<T extends Movable>(name: string, store: T, local: ReadonlyArray<keyof T>): T {
    const members = Object.entries(store as unknown as Methods)
    const methods = Object.fromEntries(members.filter(([, run]) => typeof run === 'function'))
    const stays = new Set<string>([...(local as string[]), 'entries', 'load', 'onMoved'])
    this.#places.set(name, { state: store, methods })
    const moving = Object.entries(methods).flatMap(([method, run]) =>
      stays.has(method) ? [] : [[method, this.#mover(name, method, run)]]
    )
    return { ...store, ...Object.fromEntries(moving) }
  }

  #mover(name: string, method: string, run: Methods[string]): Methods[string] {
    return (...parameters) =>
      this.#elsewhere === undefined ? run(...parameters) : this.call(name, method, parameters)
  }

  /** Calls a store, for this process or the one before. @throws StoreUnavailable */
  readonly call: CallStore = async (name, method, parameters) => {
    // Asked before anything is awaited: the state may go at any time.
    const elsewhere = this.#elsewhere
    if (elsewhere !== undefined) {
      const callElsewhere = await elsewhere
      return await callElsewhere(name, method, parameters)
    }
    const { methods } = this.#places.get(name) ?? {}
    if (methods === undefined || !Object.hasOwn(methods, method)) {
      throw new StoreUnavailable(new Error(`there is no ${name}.${method}`))
    }
    return await methods[method]?.(...parameters)
  };

  /** All state. Calls wait from now on, until `moved` or `resume`. */
  *take(): Generator<readonly [store: string, entry: Entry]> {
    this.#settle = Promise.withResolvers()
    this.#elsewhere = this.#settle.promise
    // Before any entry: a failure may end the transfer within, and all are told that it is back.
    for (const { state } of this.#places.values()) state.onMoved?.(true)
    for (const [name, { state }] of this.#places) {
      for (const entry of state.entries()) yield [name, entry]
    }
  }

  /** Takes a part of the state of the process before. */
  load(store: string, entry: Entry): void {
    this.#places.get(store)?.state.load(entry)
  }

  /** From now on the state is in another process. */
  moved(call: CallStore): void {
    this.#settle.resolve(async (...parameters) => {
      try {
        return await call(...parameters)
      } catch (cause) {
        throw new StoreUnavailable(cause)
      }
    })
  }

  /** The other process did not take it: it is still here. */
  resume(): void {
    if (this.#elsewhere === undefined) return
    this.#elsewhere = undefined
    for (const { state } of this.#places.values()) state.onMoved?.(false)
    this.#settle.resolve(this.call)
  }
}

/** A session store in memory. */
export function movableStore(handover: Handover, name: string): SessionStore {
  return handover.movable(name, createMemoryStore(), ['follow', 'ping', 'close', 'announceUsers'])
}
