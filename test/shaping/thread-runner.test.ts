/** A runner whose thread the system refuses. */
import t from 'tap'
import { createRunner, type Lost } from '../../src/shaping/thread-runner.ts'

t.test('a thread that cannot be made is a lost task, after `run` has returned', async t => {
  // The constructor throws, as it does where a container may have no more threads.
  const file = new URL('http://127.0.0.1/thread.js')
  const runner = createRunner<string, string>({ file, subject: 'the test', limits: {} })
  for (let round = 0; round < 2; round++) {
    const { promise, resolve } = Promise.withResolvers<string | Lost>()
    runner.run({ task: 'any', timeoutMs: 1000, done: resolve })
    t.ok(runner.isBusy())
    t.match(await promise, { lost: 'crash', error: /^the test has no thread: / })
    t.notOk(runner.isBusy(), 'the next task may come')
  }
  await runner.close()
})
