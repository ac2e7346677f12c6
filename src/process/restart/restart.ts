/** Replaces this process by a new one that inherits its listeners: no connection is refused. */
import type { Handover } from '../../services/handover.ts'
import type { Log } from '../../services/services.ts'
import type { ListenerFd } from '../server/listeners.ts'
import { type Program, Successor } from './successor.ts'

export type RestartOutcome =
  | { readonly outcome: 'restarted'; readonly pid: number }
  | { readonly outcome: 'refused' | 'failed'; readonly reason: string }

interface Options {
  /** Undefined where the gateway is a part of another program. */
  readonly program: Program | undefined
  readonly listeners: () => readonly ListenerFd[]
  readonly handover: Handover
  readonly isStopping: () => boolean
  /**
   * Called once a new process takes the requests: this one drains.
   * @param keepsSecretFile whether the new one needs the file with the generated `ops.secret`
   */
  readonly onReplaced: (keepsSecretFile: boolean) => void
  /** Called where no other process takes its place, after one has tried. */
  readonly onKept: () => void
  readonly log: Log
}

/** A start with many routes and a slow Redis takes a few seconds. */
const preparedWithinMs = 60_000
const readyWithinMs = 30_000

const partOfAnother = 'the gateway is a part of another program: restart that one'
const stopping = 'the gateway is stopping'

export class Restart {
  readonly #options: Options
  #isRunning = false
  #successor: Successor | undefined

  constructor(options: Options) {
    this.#options = options
  }

  /** @returns once the new process serves, or why it does not: this one goes on then */
  readonly restart = async (): Promise<RestartOutcome> => {
    const { program, handover, isStopping, log, onReplaced, onKept } = this.#options
    if (program === undefined) return this.#refuse(partOfAnother)
    const listeners = this.#options.listeners()
    const reason = this.#refusal(program, listeners)
    if (reason !== undefined) return this.#refuse(reason)
    this.#isRunning = true
    handover.joined('successor')
    log.info({ event: 'restart.begun', program: program.words }, 'starting a new process')
    let successor: Successor | undefined
    try {
      successor = new Successor(program, { listeners, secrets: handover.secrets })
      await successor.prepared(preparedWithinMs)
      if (isStopping()) throw new Error(stopping)
      await successor.begin(handover.take(), readyWithinMs)
    } catch (error) {
      await successor?.kill()
      handover.resume()
      handover.left('successor')
      this.#isRunning = false
      if (!isStopping()) onKept()
      const { message } = error as Error
      const text = 'the new process did not become ready; this one goes on'
      log.error({ event: 'restart.failed', reason: message }, text)
      return { outcome: 'failed', reason: message }
    }
    handover.moved(successor.call)
    this.#successor = successor
    const { pid } = successor
    log.info({ event: 'restart.done', successor: pid }, 'a new process takes the requests')
    // Told to stop while the state went over: that was meant for the gateway.
    if (isStopping()) successor.stop()
    onReplaced(successor.keepsSecretFile)
    return { outcome: 'restarted', pid }
  }

  /** @returns the id of the process that has replaced this one, if any */
  readonly successor = (): number | undefined => this.#successor?.pid

  #refuse(reason: string): RestartOutcome {
    const text = 'a restart was refused; this process goes on'
    this.#options.log.warn({ event: 'restart.refused', reason }, text)
    return { outcome: 'refused', reason }
  }

  #refusal(program: Program, listeners: readonly ListenerFd[]): string | undefined {
    if (this.#successor !== undefined) return 'a new process has replaced this one'
    if (this.#isRunning) return 'another restart is under way'
    if (this.#options.isStopping()) return stopping
    if (listeners.some(({ fd }) => fd < 0)) return 'not all listeners are open: try again'
    return program.refusal
  }
}
