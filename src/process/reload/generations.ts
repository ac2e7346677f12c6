/** The generation that takes requests, and the earlier ones that finish theirs. */
import type { Config } from '../../config/schema/config.ts'
import type { Generation } from '../server/generation.ts'

interface Options {
  readonly first: Generation
  readonly create: (number: number, config: Config) => Promise<Generation>
  /** From then on this generation takes the requests. */
  readonly activate: (generation: Generation) => void
  /** The time that requests of an earlier generation have to finish. */
  readonly graceMs: number
  readonly log: Record<'warn' | 'error', (fields: object, message: string) => void>
}

export class Generations {
  readonly #options: Options
  readonly #draining = new Map<Generation, Promise<void>>()
  #current: Generation
  #lastNumber: number

  constructor(options: Options) {
    this.#options = options
    this.#current = options.first
    this.#lastNumber = options.first.number
  }

  get current(): Generation {
    return this.#current
  }

  /** @throws what building throws; then nothing has changed */
  async swap(config: Config): Promise<void> {
    const previous = this.#current
    const next = await this.#options.create(++this.#lastNumber, config)
    this.#options.activate(next)
    this.#current = next
    this.#draining.set(
      previous,
      this.#drain(previous).finally(() => this.#draining.delete(previous))
    )
  }

  draining(): Array<{ readonly generation: number; readonly requests: number }> {
    return [...this.#draining.keys()].map(generation => ({
      generation: generation.number,
      requests: generation.requests()
    }))
  }

  /** Ends all requests that still run. */
  async close(): Promise<void> {
    await Promise.all(
      [this.#current, ...this.#draining.keys()].map(generation => generation.retire(0))
    )
    await Promise.all(this.#draining.values())
  }

  async #drain(generation: Generation): Promise<void> {
    const { graceMs, log } = this.#options
    try {
      const ended = await generation.retire(graceMs)
      if (ended === 0) return
      log.warn(
        { event: 'config.drained', generation: generation.number, ended },
        `requests that began before a reload were still running after ${graceMs} ms: ended`
      )
    } catch (err) {
      log.error({ err }, 'an old generation could not be closed')
    }
  }
}
