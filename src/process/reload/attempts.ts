/** Attempts to replace the running config: one after the other, and none while one is held. */
import { GatewayError } from '../../errors.ts'

export class Attempts {
  #last: Promise<unknown> = Promise.resolve()
  #release: (() => void) | undefined

  run<T>(attempt: () => Promise<T>): Promise<T> {
    const attempted = this.#last.then(attempt)
    this.#last = attempted.catch(() => {})
    return attempted
  }

  /**
   * Waits for its turn. Later attempts wait until it is released.
   * @returns what releases it
   * @throws GatewayError `ops.held`
   */
  async hold(): Promise<() => void> {
    this.refuseWhileHeld()
    const released = Promise.withResolvers<void>()
    const turn = this.#last
    const release = () => {
      if (this.#release === release) this.#release = undefined
      released.resolve()
    }
    this.#release = release
    this.#last = released.promise
    await turn
    return release
  }

  /** @throws GatewayError `ops.held` */
  refuseWhileHeld(): void {
    if (this.#release !== undefined) throw new GatewayError('ops.held')
  }

  /** Releases what is held, and waits for all attempts. */
  async end(): Promise<void> {
    this.#release?.()
    await this.#last
  }
}
