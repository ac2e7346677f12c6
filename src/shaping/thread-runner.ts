/** A thread that runs tasks of one kind, one at a time, with a time limit each. */
import { extname } from 'node:path'
import { type ResourceLimits, type Transferable, Worker } from 'node:worker_threads'
import { adopt } from '../observability/emitters.ts'

interface Options {
  readonly file: URL
  /** The subject of messages, such as `the expression`. */
  readonly subject: string
  readonly limits: ResourceLimits
  readonly workerData?: unknown
}

/** A task that got no result: its thread ended, or was ended. */
export interface Lost {
  readonly error: string
  /** `crash`: also of a thread that could not start. */
  readonly lost: 'time' | 'crash' | 'closed'
}

export interface Job<Task, Result> {
  readonly task: Task
  /** Moved to the thread rather than copied. */
  readonly transfer?: readonly Transferable[]
  readonly timeoutMs: number
  readonly done: (outcome: Result | Lost) => void
}

export interface Runner<Task, Result> {
  readonly isBusy: () => boolean
  /** Only while it is not busy. */
  readonly run: (job: Job<Task, Result>) => void
  /** The next job starts another thread. */
  readonly close: () => Promise<void>
}

/** The thread's message that a task begins: from then on its time counts. */
export const begun = 'begun'

/** Time for a new thread to start; the first task's time begins after it. */
const startMs = 10_000

/** The file of a thread: it stands beside the importing one, in the sources and in the bundle. */
export const threadFile = (name: string, importer: string): URL =>
  new URL(`${name}${extname(importer)}`, importer)

/** The thread starts with the first job; a job that exceeds its time ends it. */
export function createRunner<Task, Result>(options: Options): Runner<Task, Result> {
  const { file, subject, limits, workerData } = options
  let worker: Worker | undefined
  let running: Job<Task, Result> | undefined
  let hasBegun = false
  let timer: NodeJS.Timeout | undefined

  const settle = (outcome: Result | Lost) => {
    clearTimeout(timer)
    worker?.unref()
    const job = running
    running = undefined
    job?.done(outcome)
  }
  const abandon = (error: string, lost: Lost['lost']) => {
    const old = worker
    worker = undefined
    void old?.terminate()
    settle({ error, lost: hasBegun ? lost : 'crash' })
  }
  const limitTime = (ms: number) => {
    clearTimeout(timer)
    timer = setTimeout(() => abandon(`${subject} took too long`, 'time'), ms)
  }
  const start = () => {
    const thread = adopt(
      new Worker(file, { resourceLimits: limits, workerData, env: {}, execArgv: [] })
    )
    const isCurrent = () => worker === thread
    thread.on('message', (message: Result | typeof begun) => {
      if (!isCurrent()) return
      if (message !== begun) return settle(message)
      hasBegun = true
      limitTime(running?.timeoutMs ?? 0)
    })
    thread.on('error', error => {
      if (isCurrent()) abandon(`${subject} crashed its thread: ${error.message}`, 'crash')
    })
    thread.on('exit', () => {
      if (isCurrent()) abandon(`${subject}’s thread ended`, 'crash')
    })
    return thread
  }

  return {
    isBusy: () => running !== undefined,
    run: job => {
      running = job
      hasBegun = false
      try {
        worker ??= start()
        worker.postMessage(job.task, job.transfer ?? [])
        worker.ref()
      } catch (error) {
        // The system may refuse a thread. Not at once, since `done` may run the next job.
        queueMicrotask(() => abandon(`${subject} has no thread: ${String(error)}`, 'crash'))
        return
      }
      limitTime(startMs)
    },
    close: async () => {
      const old = worker
      worker = undefined
      if (running !== undefined) settle({ error: 'the gateway stops', lost: 'closed' })
      await old?.terminate()
    }
  }
}
