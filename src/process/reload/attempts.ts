/** Attempts to replace the running config: one after the other, and none while one is held. */
import { GatewayError } from '../../errors.ts'

/** An attempt that has its turn, but does not begin before it is committed. */
export interface Held {
  /** Makes the attempt, and releases it. @throws when it was released before */
  readonly commit: <T>(attempt: () => Promise<T>) => Promise<T>
  readonly release: () => void
}

export class Attempts {
  #last: Promise<unknown> = Promise.resolve()
  #release: (() => void) | undefined
  #isCommitting = false

  run<T>(attempt: () => Promise<T>): Promise<T> {
    const attempted = this.#last.then(attempt)
    this.#last = attempted.catch(() => {})
    return attempted
  }

  /**
   * Waits for its turn. Later attempts wait until it is committed or released.
   * @throws GatewayError `ops.held`
   */
  async hold(): Promise<Held> {
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
    const commit: Held['commit'] = async attempt => {
      if (this.#release !== release) throw new Error('it is no longer held')
      this.#isCommitting = true
      try {
        return await attempt()
      } finally {
        this.#isCommitting = false
        release()
      }
    }
    return { commit, release }
  }

  /** @throws GatewayError `ops.held` */
  refuseWhileHeld(): void {
    if (this.#release !== undefined) throw new GatewayError('ops.held')
  }

  /** Releases what is held and not committed, and waits for all attempts. */
  async end(): Promise<void> {
    if (!this.#isCommitting) this.#release?.()
    await this.#last
  }
}
