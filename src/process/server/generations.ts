/** The generation that takes requests, and those before it that still answer some. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { VouchForOperator } from '../../app/sign-in/operators.ts'
import { GatewayError } from '../../errors/errors.ts'
import type { Log } from '../../services/services.ts'
import type { Generation } from './generation.ts'

export class Generations {
  readonly #log: Pick<Log, 'error'>
  #current: Generation | undefined
  readonly #former = new Set<Generation>()

  constructor(log: Pick<Log, 'error'>) {
    this.#log = log
  }

  /** @throws before the first one was activated */
  get current(): Generation {
    if (this.#current === undefined) throw new Error('no generation takes requests yet')
    return this.#current
  }

  /** From now on this generation takes the requests; the one before ends with its last. */
  activate(generation: Generation): void {
    const previous = this.#current
    this.#current = generation
    if (previous === undefined) return
    this.#former.add(previous)
    void previous
      .retire()
      .catch((err: unknown) => this.#log.error({ err }, 'an old generation could not be closed'))
      .finally(() => this.#former.delete(previous))
  }

  draining(): Array<{ readonly generation: number; readonly requests: number }> {
    return [...this.#former].map(({ number, requests }) => ({
      generation: number,
      requests: requests()
    }))
  }

  /** Ends all requests that still run. */
  async close(): Promise<void> {
    const all = [...this.#former, ...(this.#current === undefined ? [] : [this.#current])]
    await Promise.all(all.map(generation => generation.end()))
  }

  /** @throws GatewayError */
  readonly vouchForOperator: VouchForOperator = async (...signIn) => {
    const vouch = this.#current?.vouchForOperator
    if (vouch === undefined) throw new GatewayError('gateway.stopping')
    return await vouch(...signIn)
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    this.#current?.handle(request, response)
  }
}
