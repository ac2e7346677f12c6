/** The thread in which JSONata expressions run, one after the other. */
import { parentPort } from 'node:worker_threads'
import jsonata from 'jsonata'
import { hasLongNumber, parseKeepingDigits } from '../json/digits.ts'
import { isAboutLongNumber, makeExact } from '../json/exact-jsonata.ts'
import type { Outcome, Task } from './expressions.ts'

const maxKept = 500
const maxSequence = 1_000_000
const maxStack = 500
type Evaluator = ReturnType<typeof jsonata>
const compiled = new Map<string, Evaluator>()

parentPort?.on('message', (task: Task) => {
  parentPort?.postMessage('begun')
  void run(task).then(outcome => parentPort?.postMessage(outcome))
})

async function run({ expression, input, timeoutMs, maxLength }: Task): Promise<Outcome> {
  try {
    const evaluator = compile(expression, timeoutMs, hasLongNumber(input))
    // What the expression finds nothing for is null.
    const result: unknown = (await evaluator.evaluate(parseKeepingDigits(input))) ?? null
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
    // JSONata's message quotes values, which are not for the log; its code tells what it was.
    const { code, position } = error as { code?: unknown; position?: unknown }
    return {
      error: `JSONata ${typeof code === 'string' ? code : 'failed'}${typeof position === 'number' ? ` at position ${position}` : ''}`
    }
  }
}

/** @param isExact for input with numbers that no double holds: it costs more */
function compile(expression: string, timeoutMs: number, isExact: boolean): Evaluator {
  const key = `${timeoutMs} ${isExact} ${expression}`
  const known = compiled.get(key)
  if (known !== undefined) return known
  const made = jsonata(expression, { timeout: timeoutMs, stack: maxStack, sequence: maxSequence })
  if (compiled.size >= maxKept) compiled.clear()
  compiled.set(key, isExact ? makeExact(made) : made)
  return made
}
