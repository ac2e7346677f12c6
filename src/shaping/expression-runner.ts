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

const memoryMb = 64

export function createExpressionRunner(): Runner<Task, ExpressionResult> {
  return createRunner({
    file: threadFile('expression-thread', import.meta.url),
    subject: 'the expression',
    limits: { maxOldGenerationSizeMb: memoryMb }
  })
}
