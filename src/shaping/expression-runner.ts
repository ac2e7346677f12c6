/** One thread that runs JSONata expressions, one at a time, each within its time. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { adopt } from '../observability/emitters.ts'
import type { Outcome, Task } from './expressions.ts'

export interface Job extends Task {
  /** @param isAbandoned whether the thread had to be ended for it */
  readonly done: (outcome: Outcome, isAbandoned: boolean) => void
}

export interface Runner {
  readonly isBusy: () => boolean
  /** Only while it is not busy. */
  readonly run: (job: Job) => void
  readonly close: () => Promise<void>
}

const memoryMb = 64
/** A new thread starts before its first task's time begins. */
const startMs = 10_000

/** The thread starts with the first job, and is ended with one that exceeds its time. */
export function createRunner(): Runner {
  let worker: Worker | undefined
  let running: Job | undefined
  let timer: NodeJS.Timeout | undefined

  const settle = (outcome: Outcome, isAbandoned = false) => {
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
    thread.on('message', (message: Outcome | 'begun') => {
      if (!isCurrent()) return
      if (message === 'begun') limitTime(running?.timeoutMs ?? 0)
      else settle(message)
    })
    thread.on('error', error => {
      if (isCurrent()) abandon(`the expression broke its thread: ${error.message}`)
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
