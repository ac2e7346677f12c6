import t from 'tap'
import type { ShapingPlan, ShapingTask } from '../../src/app/shaping-task.ts'
import { ShapingThreads, threadsFor } from '../../src/app/shaping-threads.ts'

const plan: ShapingPlan = {
  steps: [{ each: [{ rename: { a: 'b' } }] }, { wrap: 'list' }],
  envelope: {
    dialect: 'dual',
    successCode: 0,
    inertToken: '',
    errorStatus: 'own',
    requestId: true,
    language: 'en',
    messages: {},
    fieldErrors: false,
    tokenHeaders: [],
    tokenCookies: [],
    tokenQuery: []
  },
  contract: undefined
}

const open = (threads: number) => {
  const pool = new ShapingThreads({
    plans: { routes: { list: plan }, shapes: {} },
    threads
  })
  t.teardown(() => pool.close())
  const run = (text: string, { route = 'list', isNeeded = (): boolean => true } = {}) => {
    const bytes = Uint8Array.from(Buffer.from(text))
    const task: ShapingTask = {
      route,
      main: { bytes, headers: { 'content-encoding': undefined, 'content-type': undefined } },
      maxBytes: 64 * 1024 * 1024,
      isTagged: true
    }
    return { bytes, outcome: pool.run(task, isNeeded) }
  }
  return { pool, run }
}

const textOf = (outcome: object) =>
  'body' in outcome && outcome.body instanceof Uint8Array && Buffer.from(outcome.body).toString()

const shaped = '{"ok":true,"code":0,"message":"OK","success":true,"data":[{"b":1}],"total":1}'

t.test('bytes are moved to the thread, not copied, and come back shaped and tagged', async t => {
  const { run } = open(1)
  const { bytes, outcome } = run('[{"a":1}]')
  t.equal(bytes.buffer.detached, true)
  const result = await outcome
  t.equal(textOf(result), shaped)
  t.match(result, { tag: /^"[\w-]{27}"$/, missing: [], findings: {} })
})

t.test('an error of the body travels with its reasons', async t => {
  const { run } = open(1)
  t.match(await run('[{"a":}]').outcome, {
    code: 'shape.not-json',
    detail: { cause: { message: /position 6/ } }
  })
})

t.test('many bodies are shaped by several threads, each with its own result', async t => {
  const { run } = open(3)
  const all = Array.from({ length: 60 }, (_, n) => run(`[{"a":${n}}]`).outcome)
  const results = await Promise.all(all)
  t.same(
    results.map(result => JSON.parse(textOf(result) || 'null').data),
    Array.from({ length: 60 }, (_, n) => [{ b: n }])
  )
})

t.test('a thread that fails is replaced, and gets nothing more for a while', async t => {
  const { pool, run } = open(1)
  t.match(await run('[]', { route: 'none' }).outcome, { lost: 'crash' })
  t.equal(pool.hasRoom(1), false)
  t.equal(textOf(await run('[{"a":1}]').outcome), shaped)
})

t.test('the bytes that wait are bounded', async t => {
  const { pool, run } = open(1)
  const max = 64 * 1024 * 1024
  t.equal(pool.hasRoom(max), true)
  const first = run('[]').outcome
  const second = run('[{"a":1}]').outcome
  t.equal(pool.hasRoom(max), false, 'while the second one waits')
  t.equal(pool.hasRoom(max - 9), true)
  await Promise.all([first, second])
  t.equal(pool.hasRoom(max), true)
})

t.test('a response that nobody waits for is not shaped', async t => {
  const { run } = open(1)
  const first = run('[]').outcome
  const left = run('[]', { isNeeded: () => false }).outcome
  t.match(await left, { lost: 'closed' })
  t.match(await first, { tag: String })
})

t.test('closing ends threads and what waits', async t => {
  const { pool, run } = open(1)
  const all = Array.from({ length: 5 }, () => run('[]').outcome)
  await pool.close()
  for (const outcome of await Promise.all(all)) t.match(outcome, { lost: 'closed' })
  t.equal(pool.hasRoom(1), false)
})

t.test('the number of threads is bounded', t => {
  t.ok(threadsFor('auto') >= 1 && threadsFor('auto') <= 4)
  t.equal(threadsFor(7), 7)
  t.equal(threadsFor(0), 0)
  t.end()
})
