/** A thread that yields to the event loop has a priority of its own. */
import { once } from 'node:events'
import { readlinkSync } from 'node:fs'
import { getPriority } from 'node:os'
import { Worker } from 'node:worker_threads'
import t from 'tap'

const module = new URL('../../src/shaping/thread-priority.ts', import.meta.url)
const code = `
import { getPriority } from 'node:os'
import { readlinkSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { yieldToEventLoop } from ${JSON.stringify(module.href)}
const thread = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
const before = getPriority(thread)
yieldToEventLoop()
parentPort.postMessage({ before, after: getPriority(thread) })
`

t.test('the thread is nicer than it was, the event loop is not', async t => {
  const own = Number(readlinkSync('/proc/thread-self').split('/').at(-1))
  const former = getPriority(own)
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`))
  const [priorities] = (await once(worker, 'message')) as [unknown]
  t.same(priorities, { before: former, after: Math.min(former + 10, 19) })
  t.equal(getPriority(own), former)
})
