/** In a process that a restart has started: the process that it replaces. */
import { closeSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import type { Readiness } from '../../admin/server.ts'
import type { Config } from '../../config/schema/config.ts'
import { parseKeepingDigits } from '../../json/digits.ts'
import { Handover, type Secrets } from '../../services/handover.ts'
import { steadyClock } from '../../steady-clock.ts'
import { type ListenerFd, type ListenerFds, listenersOf } from '../server/listeners.ts'
import {
  type FromPredecessor,
  type FromSuccessor,
  listenersVariable,
  type StoreCall
} from './messages.ts'

/** Redis may take its time, less than the predecessor waits. */
const readyWithinMs = 20_000
const askAgainMs = 50

export interface InheritedFds extends ListenerFds {
  readonly ops?: number | undefined
}

/** This process cannot take the place of its predecessor, which goes on. */
export class TakeOverError extends Error {}

export class Predecessor {
  readonly #listeners: readonly ListenerFd[]
  readonly #begun = Promise.withResolvers<void>()
  readonly #secrets = Promise.withResolvers<Secrets>()
  readonly #ended = Promise.withResolvers<void>()
  #handover: Handover | undefined
  #keepsSecretFile = false

  constructor(listeners: readonly ListenerFd[]) {
    this.#listeners = listeners
    // It may end before anybody waits.
    for (const { promise } of [this.#begun, this.#secrets]) promise.catch(() => {})
    process.on('message', this.#onMessage)
    process.once('disconnect', () => {
      const error = new TakeOverError('the process that this one was to replace has ended')
      this.#begun.reject(error)
      this.#secrets.reject(error)
      this.#handover?.left('predecessor')
      this.#ended.resolve()
    })
  }

  /** Resolves once it has drained, or has ended otherwise: until then it asks this process. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  /** @returns where its state goes. @throws TakeOverError when it has ended */
  async handover(): Promise<Handover> {
    this.#handover = new Handover(await this.#secrets.promise)
    this.#handover.joined('predecessor')
    return this.#handover
  }

  readonly #onMessage = (message: FromPredecessor): void => {
    if (message.kind === 'secrets') {
      // Before there is any state.
      if (message.clock !== undefined) steadyClock.follow(message.clock)
      this.#secrets.resolve(message.secrets)
    }
    if (message.kind === 'state') {
      for (const [store, entry] of message.entries) this.#handover?.load(store, entry)
    }
    if (message.kind === 'begin') this.#begun.resolve()
    if (message.kind === 'call') void this.#serve(message)
  }

  /** The predecessor still answers the last requests of its connections. */
  async #serve({ id, store, method, parameters }: StoreCall): Promise<void> {
    try {
      const value = await this.#handover?.call(store, method, parameters)
      await tell({ kind: 'result', id, value })
    } catch (error) {
      await tell({ kind: 'result', id, error: (error as Error).message })
    }
  }

  /** The descriptors of those listeners that config still has; the others are closed. */
  descriptors(config: Config): InheritedFds {
    const { ops } = config.gateway
    const wanted = new Map([...listenersOf(config), ['ops', ops.listen] as const])
    const isWanted = ({ name, listen }: ListenerFd) => wanted.get(name) === listen
    for (const listener of this.#listeners) if (!isWanted(listener)) closeSync(listener.fd)
    const fds: InheritedFds = Object.fromEntries(
      this.#listeners.filter(isWanted).map(({ name, fd }) => [name, fd] as const)
    )
    // The file is named by the address.
    this.#keepsSecretFile = fds.ops !== undefined && ops.secret === undefined
    return fds
  }

  /**
   * Waits until this process could serve, then until it may.
   * @throws TakeOverError when it is not ready in time, or the predecessor has ended
   */
  async takeOver(readiness: () => Promise<Readiness>): Promise<void> {
    const giveUpAt = performance.now() + readyWithinMs
    for (;;) {
      const { ready, parts } = await readiness()
      if (ready) break
      if (performance.now() > giveUpAt) {
        const states = Object.entries(parts).map(([name, state]) => `${name}: ${state}`)
        throw new TakeOverError(`not ready within ${readyWithinMs / 1000} s: ${states.join('; ')}`)
      }
      await wait(askAgainMs)
    }
    await tell({ kind: 'prepared' })
    await this.#begun.promise
  }

  /** From now on this process takes requests, and the other ends. */
  async ready(): Promise<void> {
    await tell({ kind: 'ready', keepsSecretFile: this.#keepsSecretFile })
  }

  async fail(reason: string): Promise<void> {
    await tell({ kind: 'failed', reason })
  }
}

/** @returns undefined in a process that no restart has started */
export function findPredecessor(): Predecessor | undefined {
  const listeners = process.env[listenersVariable]
  // Programs that this one starts have not inherited them.
  delete process.env[listenersVariable]
  if (listeners === undefined || process.send === undefined) return undefined
  return new Predecessor(parseKeepingDigits(listeners) as unknown as ListenerFd[])
}

/** Resolves when it was sent, or cannot be. */
async function tell(message: FromSuccessor): Promise<void> {
  if (!process.connected) return
  await new Promise<void>(resolve => {
    process.send?.(message, undefined, undefined, () => resolve())
  })
}
