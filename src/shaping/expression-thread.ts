/** The thread that runs JSONata expressions, one after the other. */
import { parentPort } from 'node:worker_threads'
import jsonata from 'jsonata'
import { recentlyUsed } from '../bounded-map.ts'
import { hasLongNumber, parseKeepingDigits } from '../json/digits.ts'
import { isAboutLongNumber, makeExact, refuseLongNumbers } from '../json/exact-jsonata.ts'
import type { ExpressionResult, Task } from './expression-runner.ts'
import { begun } from './thread-runner.ts'

const maxKept = 500
const maxSequence = 1_000_000
const maxStack = 500
type Evaluator = ReturnType<typeof jsonata>
const compiled = recentlyUsed<Evaluator>(maxKept)

parentPort?.on('message', (task: Task) => {
  parentPort?.postMessage(begun)
  void run(task).then(outcome => parentPort?.postMessage(outcome))
})

async function run(task: Task): Promise<ExpressionResult> {
  const { input, maxLength } = task
  try {
    // JSONata returns undefined where nothing matches.
    const result: unknown = (await evaluate(task, hasLongNumber(input))) ?? null
    const output = JSON.stringify(result) ?? 'null'
    return output.length > maxLength
      ? { error: `its result is larger than ${maxLength} bytes` }
      : { output }
  } catch (error) {
    if (isAboutLongNumber(error)) {
      return {
        error: 'it computes with a number that no double holds',
        code: 'shape.number-too-long'
      }
    }
    // JSONata's message quotes values, which the log must not hold: its code is logged instead.
    const { code, position } = error as { code?: unknown; position?: unknown }
    return {
      error: `JSONata ${typeof code === 'string' ? code : 'failed'}${typeof position === 'number' ? ` at position ${position}` : ''}`
    }
  }
}

/** Exactly only where it has to be: also where an expression makes a long number of a text. */
async function evaluate(task: Task, isExact: boolean): Promise<unknown> {
  const { expression, input, timeoutMs } = task
  try {
    return await compile(expression, timeoutMs, isExact).evaluate(parseKeepingDigits(input))
  } catch (error) {
    if (isExact || !isAboutLongNumber(error)) throw error
    return await evaluate(task, true)
  }
}

/** @param isExact for input with numbers that no double holds; slower */
function compile(expression: string, timeoutMs: number, isExact: boolean): Evaluator {
  const key = `${timeoutMs} ${isExact} ${expression}`
  const cached = compiled.get(key)
  if (cached !== undefined) return cached
  const evaluator = jsonata(expression, {
    timeout: timeoutMs,
    stack: maxStack,
    sequence: maxSequence
  })
  compiled.set(key, isExact ? makeExact(evaluator) : refuseLongNumbers(evaluator))
  return evaluator
}
