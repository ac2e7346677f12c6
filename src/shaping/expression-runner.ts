/** A thread that runs JSONata expressions. */
import { createRunner, type Job, type Lost, type Runner, threadFile } from './thread-runner.ts'

/** The message to the thread. */
export interface Task {
  readonly expression: string
  readonly input: string
  readonly maxLength: number
  readonly timeoutMs: number
}
export type ExpressionResult = { readonly output: string } | Failure
interface Failure {
  readonly error: string
  readonly code?: 'shape.number-too-long'
}

export type ExpressionOutcome = ExpressionResult | Lost
export type ExpressionJob = Job<Task, ExpressionResult>

const minMemoryMb = 64
/**
 * A list of short members takes some 22 times its JSON. V8 ends the whole process, not the thread,
 * where a thread reaches its limit within JSON.parse.
 */
const memoryOfJson = 32

export function createExpressionRunner(): Runner<Task, ExpressionResult> {
  let memoryMb = minMemoryMb
  let runner = createThread(memoryMb)
  return {
    isBusy: () => runner.isBusy(),
    run: job => {
      const neededMb = (job.task.maxLength * memoryOfJson) / 1024 / 1024
      if (neededMb > memoryMb) {
        void runner.close()
        memoryMb = neededMb
        runner = createThread(memoryMb)
      }
      runner.run(job)
    },
    close: () => runner.close()
  }
}

function createThread(memoryMb: number): Runner<Task, ExpressionResult> {
  return createRunner({
    file: threadFile('expression-thread', import.meta.url),
    subject: 'the expression',
    limits: { maxOldGenerationSizeMb: memoryMb }
  })
}
