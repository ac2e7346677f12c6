/** What of heap and buffers is still held after some work. */
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** @returns by how many bytes what lives after collections has grown */
export async function retainedBytes(work: () => unknown): Promise<number> {
  const before = await liveBytes()
  await work()
  return (await liveBytes()) - before
}

async function liveBytes(): Promise<number> {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let times = 0; times < 3; times++) {
    collect()
    await turn()
  }
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}
