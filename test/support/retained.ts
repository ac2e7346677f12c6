/** What of the heap is still held after some work. */
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** @returns by how many bytes the heap after collections has grown */
export async function retainedBytes(work: () => unknown): Promise<number> {
  const before = await heapUsed()
  await work()
  return (await heapUsed()) - before
}

async function heapUsed(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let times = 0; times < 3; times++) {
    collect()
    await turn()
  }
  return process.memoryUsage().heapUsed
}
