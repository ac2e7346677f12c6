/** A worker process as the primary knows it: its calls, its state, and whether it answers. */
import type { Worker } from 'node:cluster'
import type { Log } from '../../services/services.ts'
import {
  type CallWorker,
  connectWorker,
  within,
  WorkerGone,
  WorkerSilent,
  type WorkerState
} from './rpc.ts'

interface Options {
  readonly index: number
  readonly worker: Worker
  /** Starts in a row that failed before this one. */
  readonly failures: number
  /** Called when the worker drains and ends, because of an uncaught error. */
  readonly onFailing: () => void
  readonly log: Log
}

/** Shorter than the time-outs of those who ask for the state of the machine. */
const stateMs = 1000
/** The time that a worker with nothing left to do has to end. */
const exitWithinMs = 3000

/** The time that a worker mostly needs to stop when all requests have ended. */
const closeMs = 500

interface StopTimes {
  readonly graceMs: number
  readonly lingerMs: number
  /** What one that answers may need when all requests have ended. */
  readonly stopMs: number
}

export class WorkerHandle {
  readonly index: number
  readonly worker: Worker
  readonly call: CallWorker
  readonly failures: number
  readonly startedAt = performance.now()
  /** Whether it serves the config that is in force. */
  isServing = false
  /** The generation that it has built by the last call of `build`. */
  built: number | undefined
  /** As it said last. */
  state: WorkerState | undefined
  readonly #log: Log
  #isSilent = false

  constructor({ index, worker, failures, onFailing, log }: Options) {
    this.index = index
    this.worker = worker
    this.failures = failures
    this.call = connectWorker(worker, onFailing)
    this.#log = log
  }

  /** Whether it has not answered the last question for its state yet. */
  get isSilent(): boolean {
    return this.#isSilent
  }

  /**
   * Asks for its state. A silent worker is not waited for again until it has answered.
   * @throws WorkerSilent, WorkerGone
   */
  async ask(): Promise<WorkerState> {
    if (this.#isSilent) throw new WorkerSilent('the worker does not answer')
    const reply = this.call('state', {})
    try {
      return (this.state = await within(stateMs, reply))
    } catch (error) {
      if (error instanceof WorkerSilent) this.#noteSilence(reply)
      throw error
    }
  }

  /** Kills it where it hangs. @returns whether its requests finished within the time */
  async stop({ graceMs, lingerMs, stopMs }: StopTimes): Promise<boolean> {
    const drainMs = graceMs + lingerMs
    const reply = this.call('stop', { graceMs, lingerMs }, drainMs + stopMs)
    try {
      return await within(drainMs + closeMs, reply).catch(async (err: unknown) => {
        if (!(err instanceof WorkerSilent)) throw err
        // The process may end itself before `stopMs`. One that hangs would be left behind.
        await this.#assertAnswers()
        return await reply
      })
    } catch (err) {
      if (err instanceof WorkerGone) return true
      if (!(err instanceof WorkerSilent)) throw err
      this.#log.error({ worker: this.index, err }, 'a worker hangs; killed')
      this.kill()
      return false
    }
  }

  kill(): void {
    this.isServing = false
    this.worker.process.kill('SIGKILL')
  }

  /** Disconnected, a worker ends itself once it has written its log. */
  async end(): Promise<void> {
    const { worker } = this
    if (worker.isDead()) return
    const exited = new Promise<void>(resolve => {
      worker.once('exit', () => resolve())
    })
    if (worker.isConnected()) worker.process.disconnect()
    const timer = setTimeout(() => worker.process.kill('SIGKILL'), exitWithinMs)
    await exited
    clearTimeout(timer)
  }

  /** Whatever it answers. @throws WorkerSilent, WorkerGone */
  async #assertAnswers(): Promise<void> {
    await this.call('state', {}, stateMs).catch((error: unknown) => {
      if (error instanceof WorkerSilent || error instanceof WorkerGone) throw error
    })
  }

  #noteSilence(reply: Promise<WorkerState>): void {
    if (this.#isSilent) return
    this.#isSilent = true
    const worker = this.index
    this.#log.warn(
      { event: 'worker.silent', worker },
      `a worker has not answered for ${stateMs} ms: it counts as not ready`
    )
    const onReply = () => {
      this.#isSilent = false
      this.#log.info({ event: 'worker.answers', worker }, 'the worker answers again')
    }
    reply.then(onReply, error => {
      // One that ends is replaced, which is logged.
      if (!(error instanceof WorkerGone)) onReply()
    })
  }
}
