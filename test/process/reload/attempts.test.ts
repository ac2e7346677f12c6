import t from 'tap'
import { Attempts } from '../../../src/process/reload/attempts.ts'

t.test('the end waits for an attempt that is committed', async t => {
  const attempts = new Attempts()
  const { commit } = await attempts.hold()
  const { promise, resolve } = Promise.withResolvers<void>()
  const steps: string[] = []
  const committed = commit(async () => {
    await promise
    steps.push('swapped')
  })
  const ended = attempts.end().then(() => steps.push('ended'))
  // Without the wait it would end now, in a few microtasks.
  await new Promise(resolveLater => setImmediate(resolveLater))
  resolve()
  await Promise.all([committed, ended])
  t.same(steps, ['swapped', 'ended'])
})

t.test('the end does not wait for an attempt that is only held, and none begins later', async t => {
  const attempts = new Attempts()
  const { commit } = await attempts.hold()
  await attempts.end()
  await t.rejects(
    commit(async () => t.fail('it began')),
    { message: 'it is no longer held' }
  )
})

t.test('a commit that fails releases the attempts after it', async t => {
  const attempts = new Attempts()
  const { commit } = await attempts.hold()
  t.throws(() => attempts.refuseWhileHeld(), { code: 'ops.held' })
  const later = attempts.run(async () => 'later')
  const failure = new Error('it cannot be built')
  await t.rejects(
    commit(async () => await Promise.reject(failure)),
    failure
  )
  t.equal(await later, 'later')
  attempts.refuseWhileHeld()
})
