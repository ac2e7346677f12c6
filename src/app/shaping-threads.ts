/**
 * The threads that shape long bodies of one generation, so that other requests do not wait for
 * them. Bounded in number, in waiting bytes and in time.
 */
import { availableParallelism } from 'node:os'
import { getHeapStatistics } from 'node:v8'
import {
  createRunner,
  type Job,
  type Lost,
  type Runner,
  threadFile
} from '../shaping/thread-runner.ts'
import type { ShapeContext } from '../shaping/shape.ts'
import {
  bytesOf,
  type ShapingPlan,
  type ShapingResult,
  type ShapingTask,
  sourcesOf
} from './shaping-task.ts'

/** The plans of one generation, in plain data. Each of its threads gets them all at its start. */
export interface ShapingPlans {
  readonly routes: Readonly<Record<string, ShapingPlan>>
  readonly shapes: ShapeContext['shapes']
}

/** @param bytes of the upstream, where the body is too large to be shaped */
export type ThreadResult = ShapingResult & { readonly bytes?: Uint8Array<ArrayBuffer> }
export type ThreadOutcome = ThreadResult | Lost

type ShapingJob = Job<ShapingTask, ThreadResult> & {
  /** Whether the response is still needed when its turn comes. */
  readonly isNeeded: () => boolean
}

const maxThreads = 4
/** Of all waiting bodies: each is held in memory. */
const maxWaitingBytes = 64 * 1024 * 1024
const maxWaiting = 200
/** A far longer time than any body that fits into the memory takes. */
const timeoutMs = 30_000
/** A body that waits so long starts a further thread, which costs about as much. */
const patienceMs = 50
/** Threads without a body for so long are ended: each holds memory. */
const idleMs = 30_000
/** After a thread failed, bodies are shaped without threads for so long. */
const restMs = 60_000

/** As much as the event loop's stack, so that nesting is as deep as there. */
const stackSizeMb = 1.15
/**
 * As much as the event loop's, which would have had to shape the same bodies: V8 ends the whole
 * process when a thread reaches its limit within JSON.parse.
 */
const memoryMb = getHeapStatistics().heap_size_limit / 1024 / 1024

const closed: Lost = { error: 'the response is not needed any more', lost: 'closed' }

/** One core is the event loop's; worker processes share the cores. */
export function threadsFor(configured: number | 'auto'): number {
  if (configured !== 'auto') return configured
  return Math.max(1, Math.min(maxThreads, availableParallelism() - 1))
}

interface Options {
  readonly plans: ShapingPlans
  readonly threads: number
}

/** A queue of bodies, and threads that start with the first of them. */
export class ShapingThreads {
  readonly #runners: readonly Runner<ShapingTask, ThreadResult>[]
  #waiting: ShapingJob[] = []
  #waitingBytes = 0
  /** Started, or about to start; the others are free for a body that has waited for long. */
  #started = 1
  #restUntil = 0
  #impatient: NodeJS.Timeout | undefined
  #idle: NodeJS.Timeout | undefined
  #isClosed = false

  constructor({ plans, threads }: Options) {
    this.#runners = Array.from({ length: threads }, () =>
      createRunner<ShapingTask, ThreadResult>({
        file: threadFile('shaping-thread', import.meta.url),
        subject: 'shaping',
        limits: { maxOldGenerationSizeMb: memoryMb, stackSizeMb },
        workerData: plans
      })
    )
  }

  hasRoom(bytes: number): boolean {
    return (
      !this.#isClosed &&
      this.#waiting.length < maxWaiting &&
      this.#waitingBytes + bytes <= maxWaitingBytes &&
      performance.now() >= this.#restUntil
    )
  }

  /** Moves the bytes of the task to a thread. */
  async run(task: ShapingTask, isNeeded: () => boolean): Promise<ThreadOutcome> {
    const { promise, resolve } = Promise.withResolvers<ThreadOutcome>()
    const transfer = sourcesOf(task).map(({ bytes }) => bytes.buffer)
    this.#waiting.push({ task, transfer, timeoutMs, isNeeded, done: resolve })
    this.#waitingBytes += bytesOf(task)
    this.#schedule()
    const outcome = await promise
    if ('lost' in outcome && outcome.lost === 'crash') this.#restUntil = performance.now() + restMs
    this.#schedule()
    return outcome
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#impatient)
    clearTimeout(this.#idle)
    for (const job of this.#waiting.splice(0)) job.done(closed)
    await Promise.all(this.#runners.map(runner => runner.close()))
  }

  #schedule(): void {
    if (this.#isClosed) return
    clearTimeout(this.#idle)
    for (const runner of this.#runners.slice(0, this.#started)) {
      if (runner.isBusy()) continue
      const job = this.#take()
      if (job === undefined) break
      runner.run(job)
    }
    if (this.#waiting.length > 0) this.#growLater()
    else if (!this.#runners.some(runner => runner.isBusy())) this.#closeLater()
  }

  #take(): ShapingJob | undefined {
    for (let job = this.#waiting.shift(); job !== undefined; job = this.#waiting.shift()) {
      this.#waitingBytes -= bytesOf(job.task)
      if (job.isNeeded()) return job
      job.done(closed)
    }
    return undefined
  }

  #growLater(): void {
    if (this.#started === this.#runners.length) return
    this.#impatient ??= setTimeout(() => {
      this.#impatient = undefined
      if (this.#waiting.length === 0) return
      this.#started++
      this.#schedule()
    }, patienceMs).unref()
  }

  #closeLater(): void {
    this.#idle = setTimeout(() => {
      this.#started = 1
      for (const runner of this.#runners) void runner.close()
    }, idleMs).unref()
  }
}
