/** The thread that shapes long bodies, one after the other. */
import { parentPort, workerData } from 'node:worker_threads'
import { yieldToEventLoop } from '../shaping/thread-priority.ts'
import { begun } from '../shaping/thread-runner.ts'
import { compileWork, type ShapingTask } from './shaping-task.ts'
import type { ShapingPlans } from './shaping-threads.ts'

yieldToEventLoop()

const { routes, shapes } = workerData as ShapingPlans
const compiled = new Map<string, ReturnType<typeof compileWork>>()

parentPort?.on('message', (task: ShapingTask) => {
  parentPort?.postMessage(begun)
  const result = workOf(task.route)(task)
  // Only a response that passes unshaped needs the upstream's bytes again; none with parts does.
  const isReturned = 'code' in result && result.code === 'shape.too-large' && !task.parts
  const bytes = isReturned && 'bytes' in task.main ? task.main.bytes : undefined
  const body = 'body' in result ? result.body : bytes
  parentPort?.postMessage({ ...result, bytes }, body === undefined ? [] : [body.buffer])
})

/** Compiled with the route's first body; a thread ends with the generation of its config. */
function workOf(route: string): ReturnType<typeof compileWork> {
  const existing = compiled.get(route)
  if (existing !== undefined) return existing
  const plan = routes[route]
  if (plan === undefined) throw new Error(`there is no shape of route "${route}"`)
  const work = compileWork(plan, shapes)
  compiled.set(route, work)
  return work
}
