/** A thread that runs JSONata expressions, one at a time, with a time limit each. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { adopt } from '../observability/emitters.ts'

/** The message to the thread. */
export interface Task {
  readonly expression: string
  readonly input: string
  readonly timeoutMs: number
  readonly maxLength: number
}
export type ExpressionResult = { readonly output: string } | Failure
interface Failure {
  readonly error: string
  readonly code?: 'shape.number-too-long'
}

export interface Job extends Task {
  /** @param isAbandoned whether the thread was ended because of the job */
  readonly done: (outcome: ExpressionResult, isAbandoned: boolean) => void
}

export interface Runner {
  readonly isBusy: () => boolean
  /** Only while it is not busy. */
  readonly run: (job: Job) => void
  readonly close: () => Promise<void>
}

const memoryMb = 64
/** Time for a new thread to start; the first task's time begins after it. */
const startMs = 10_000

/** The thread starts with the first job; a job that exceeds its time ends it. */
export function createRunner(): Runner {
  let worker: Worker | undefined
  let running: Job | undefined
  let timer: NodeJS.Timeout | undefined

  const settle = (outcome: ExpressionResult, isAbandoned = false) => {
    clearTimeout(timer)
    worker?.unref()
    const job = running
    running = undefined
    job?.done(outcome, isAbandoned)
  }
  const abandon = (reason: string) => {
    const old = worker
    worker = undefined
    void old?.terminate()
    settle({ error: reason }, true)
  }
  const limitTime = (ms: number) => {
    clearTimeout(timer)
    timer = setTimeout(() => abandon('the expression took too long'), ms)
  }
  const start = () => {
    const file = new URL(`expression-thread${extname(import.meta.url)}`, import.meta.url)
    const thread = adopt(
      new Worker(file, {
        resourceLimits: { maxOldGenerationSizeMb: memoryMb },
        env: {},
        execArgv: []
      })
    )
    const isCurrent = () => worker === thread
    thread.on('message', (message: ExpressionResult | 'begun') => {
      if (!isCurrent()) return
      if (message === 'begun') limitTime(running?.timeoutMs ?? 0)
      else settle(message)
    })
    thread.on('error', error => {
      if (isCurrent()) abandon(`the expression crashed its thread: ${error.message}`)
    })
    thread.on('exit', () => {
      if (isCurrent()) abandon('the expression’s thread ended')
    })
    return thread
  }

  return {
    isBusy: () => running !== undefined,
    run: job => {
      running = job
      const { done: _, ...task } = job
      worker ??= start()
      worker.ref()
      limitTime(startMs)
      worker.postMessage(task satisfies Task)
    },
    close: async () => {
      const old = worker
      worker = undefined
      if (running !== undefined) settle({ error: 'the gateway stops' })
      await old?.terminate()
    }
  }
}
