/** The thread in which JSONata expressions run, one after the other. */
import { parentPort } from 'node:worker_threads'
import jsonata from 'jsonata'
import type { Outcome, Task } from './expressions.ts'

const maxKept = 500
const maxSequence = 1_000_000
const maxStack = 500
const compiled = new Map<string, ReturnType<typeof jsonata>>()

parentPort?.on('message', (task: Task) => {
  parentPort?.postMessage('begun')
  void run(task).then(outcome => parentPort?.postMessage(outcome))
})

async function run ({ expression, input, timeoutMs, maxLength }: Task): Promise<Outcome> {
  try {
    const key = `${timeoutMs} ${expression}`
    let evaluator = compiled.get(key)
    if (evaluator === undefined) {
      if (compiled.size >= maxKept) compiled.clear()
      compiled.set(key, evaluator = jsonata(expression, { timeout: timeoutMs, stack: maxStack, sequence: maxSequence }))
    }
    // What the expression finds nothing for is null.
    const output = JSON.stringify(await evaluator.evaluate(JSON.parse(input)) ?? null) ?? 'null'
    return output.length > maxLength ? { error: `its result is larger than ${maxLength} bytes` } : { output }
  } catch (error) {
    // JSONata's message quotes values, which are not for the log; its code tells what it was.
    const { code, position } = error as { code?: unknown, position?: unknown }
    return { error: `JSONata ${typeof code === 'string' ? code : 'failed'}${typeof position === 'number' ? ` at position ${position}` : ''}` }
  }
}
