/** Calls between the primary and a worker, which is a process of its own here. */
import { type ChildProcess, spawn } from 'node:child_process'
import type { Worker } from 'node:cluster'
import { EventEmitter, once } from 'node:events'
import t, { type Test } from 'tap'
import { adopt } from '../../../src/observability/emitters.ts'
import { connectWorker, WorkerGone } from '../../../src/process/cluster/rpc.ts'
import { until } from '../../support/until.ts'

const worker = `
  import { reportFailing, servePrimary } from '${new URL('../../../src/process/cluster/rpc.ts', import.meta.url).href}'
  const never = new Promise(() => {})
  servePrimary({
    countAlive: async () => 7,
    metrics: async ({ format }) => await new Promise(resolve => {
      setTimeout(() => resolve({ index: 1, body: format }), format === 'slow' ? 200 : 0)
    }),
    listen: async () => {
      const where = { address: '127.0.0.1', port: 80, secret: 'kept' }
      throw Object.assign(new Error('it is taken'), { code: 'EADDRINUSE', ...where })
    },
    drop: async () => { throw new Error('it cannot') },
    observe: async () => { reportFailing(); await never },
    stop: async () => process.exit(0),
    retire: async () => never
  })
  process.send({ limits: 'of which calls know nothing' })
`

async function connected(t: Test) {
  const child: ChildProcess = adopt(
    spawn(process.execPath, ['--input-type=module', '-e', worker], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      serialization: 'advanced'
    })
  )
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'message')
  let failing = 0
  const call = connectWorker(child as unknown as Worker, () => failing++)
  return { child, call, failing: () => failing }
}

t.test('each call gets the reply to it, in whatever order replies come', async t => {
  const { call, child } = await connected(t)
  child.send({ limits: 'of which calls know nothing' })
  const slow = call('metrics', { format: 'slow' as never })
  const quick = call('metrics', { format: 'quick' as never })
  t.same(await quick, { index: 1, body: 'quick' })
  t.equal(await call('countAlive', {}), 7)
  t.same(await slow, { index: 1, body: 'slow' })
})

t.test('an error says what, and where it was about an address', async t => {
  const { call } = await connected(t)
  const listening: NodeJS.ErrnoException = await call('listen', { fds: {} }).then(
    () => new Error('it listens'),
    (error: Error) => error
  )
  const { message, code, address, port, secret } = listening as never
  t.same([message, code, address, port], ['it is taken', 'EADDRINUSE', '127.0.0.1', 80])
  t.equal(secret, undefined)
  await t.rejects(call('drop', { number: 1 }), { message: 'it cannot' })
  t.equal(await call('countAlive', {}), 7, 'and the worker goes on')
})

t.test('a worker that says that it fails is heard once; its calls go on', async t => {
  const { call, failing } = await connected(t)
  void call('observe', { kind: 'any', query: {} }).catch(() => {})
  await until('it is heard', () => failing() === 1)
  t.equal(await call('countAlive', {}), 7)
  t.equal(failing(), 1)
})

t.test('calls of a worker that ends are over, those that were made and later ones', async t => {
  const { call, child } = await connected(t)
  const open = call('retire', { number: 1, graceMs: 1 })
  const exit = once(child, 'exit')
  const last = call('stop', { graceMs: 1, lingerMs: 1 })
  const results = await Promise.allSettled([open, last])
  for (const result of results) {
    t.ok(result.status === 'rejected' && result.reason instanceof WorkerGone)
  }
  await exit
  await t.rejects(call('countAlive', {}), { message: 'the worker ended' })
})

t.test('a call that cannot be sent is over at once, and others are not', async t => {
  const sent: Array<(error: Error | null) => void> = []
  const ends = Object.assign(new EventEmitter(), {
    send: (_message: unknown, callback: (error: Error | null) => void) => void sent.push(callback)
  })
  const call = connectWorker(ends as unknown as Worker, () => {})
  const [first, second] = [call('countAlive', {}), call('countAlive', {})]
  sent[0]?.(new Error('the channel is closed'))
  sent[1]?.(null)
  await t.rejects(first, { message: 'the channel is closed' })
  await first.catch((error: unknown) => t.ok(error instanceof WorkerGone))
  ends.emit('message', { id: 9, value: 'of no call' })
  ends.emit('message', { id: 2, value: 3 })
  t.equal(await second, 3)
  sent[1]?.(new Error('too late'))
})
