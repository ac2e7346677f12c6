/** What workers ask of the primary about limits, as plain calls in one process. */
import { mock } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { createMemoryTally } from '../../../src/limits/counting/memory-tally.ts'
import type { TallyEntry } from '../../../src/limits/counting/rules.ts'
import { askMs, type LimitAsks, writeVerdict } from '../../../src/process/cluster/lease-messages.ts'
import { LeaseRelay } from '../../../src/process/cluster/lease-relay.ts'
import { rule } from '../../suites/tally.ts'

const commandMs = 10 * askMs

/** A worker whose primary answers nothing by itself. */
function worker(t: Test) {
  // Timers of the relay keep no process running.
  const alive = setInterval(() => {}, askMs)
  t.teardown(() => clearInterval(alive))
  const messages: LimitAsks[] = []
  const relay = new LeaseRelay(
    ({ limits }) => {
      messages.push(limits)
      return true
    },
    1,
    commandMs
  )
  const tally = relay.tally(createMemoryTally(() => 1000))
  /** Counts at a time at which the worker does not ask a primary that was silent. */
  const consumePaused = (entries: readonly TallyEntry[]) => {
    const now = mock.method(performance, 'now', () => 0)
    const verdicts = tally.consume(entries)
    now.mock.restore()
    return verdicts
  }
  /** The primary lets the request of this id pass, and grants 5 more. */
  const answer = (id: number) => {
    const grant = { requests: 5, ms: 1000 }
    const verdict = { exceeded: false, remaining: 9, resetMs: 1000, retryMs: 0, grant }
    relay.onAnswers({ answers: [[id, [writeVerdict(verdict)]]], recalled: [], processes: 1 })
    relay.flush()
  }
  return { relay, tally, messages, consumePaused, answer }
}

const entry = { rule: rule({ max: 10 }), key: 'k', unreported: 0 }

t.test('a primary that does not answer is told only what was used or is left', async t => {
  const { relay, tally, messages, consumePaused } = worker(t)
  await tally.consume([entry])
  t.equal(messages.length, 1)
  await consumePaused([entry])
  await consumePaused([{ ...entry, unused: 0 }])
  relay.flush()
  t.equal(messages.length, 1, 'nothing was used')
  const [used, left] = [
    { ...entry, key: 'used', unreported: 2 },
    { ...entry, key: 'left', unused: 3 }
  ]
  await consumePaused([entry, used, left])
  relay.flush()
  t.same(
    messages.slice(1).flatMap(({ asks }) => asks.flatMap(([, , entries]) => entries)),
    [
      [0, 'used', 2, 0],
      [0, 'left', 0, 3]
    ]
  )
})

t.test('a late answer to a request is given back, and one to a look is not', async t => {
  const { tally, messages, answer } = worker(t)
  await tally.consume([entry])
  answer(1)
  t.match(messages, [{ asks: [[1, 'consume']] }, { asks: [[0, 'settle', [[0, 'k', -1, 5]]]] }])
  await tally.report([entry])
  t.match(messages[2], { asks: [[2, 'inspect']] })
  answer(2)
  t.equal(messages.length, 3, 'nothing was counted for a look')
})

t.test('of a late answer, a limit that only reports gives nothing back', async t => {
  const { relay, tally, messages } = worker(t)
  const shy = { ...entry, rule: rule({ name: 'shy', max: 1, enforced: false }), key: 's' }
  await tally.consume([entry, shy])
  const verdict = { exceeded: false, remaining: 9, resetMs: 1000, retryMs: 0 }
  const verdicts = [verdict, { ...verdict, exceeded: true }].map(writeVerdict)
  relay.onAnswers({ answers: [[1, verdicts]], recalled: [], processes: 1 })
  relay.flush()
  t.match(messages[1]?.asks, [[0, 'settle', { length: 1, 0: [0, 'k', -1, 0] }]])
})

t.test('an answer that is under way is waited for, and counts once', async t => {
  const { relay, tally, messages, answer } = worker(t)
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const verdicts = tally.consume([entry])
  relay.flush()
  relay.onAnswers({ answers: [[1, 'under way']], recalled: [], processes: 1 })
  mock.timers.tick(10 * askMs)
  await setImmediate()
  answer(1)
  t.match(await verdicts, [{ remaining: 9, grant: { requests: 5 } }])
  t.equal(messages.length, 1, 'nothing is given back')
})

t.test('an answer that is under way is not waited for if the primary hangs then', async t => {
  const { relay, tally, messages, answer } = worker(t)
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  const verdicts = tally.consume([entry])
  relay.flush()
  relay.onAnswers({ answers: [[1, 'under way']], recalled: [], processes: 1 })
  mock.timers.tick(2 * commandMs + askMs)
  t.match(await verdicts, [{ exceeded: false, grant: { requests: 0 } }], 'counted directly')
  answer(1)
  t.match(messages[1], { asks: [[0, 'settle', [[0, 'k', -1, 5]]]] }, 'the late one is given back')
})

t.test('a worker without a primary counts by itself', async t => {
  const relay = new LeaseRelay(() => false, 1, 400)
  const tally = relay.tally(createMemoryTally(() => 1000))
  t.match(await tally.consume([entry]), [{ exceeded: false, remaining: 9 }])
})

t.test('a worker gives back what is called back, and knows how many count', async t => {
  const { relay } = worker(t)
  const released: string[] = []
  relay.onRecall(keys => released.push(...keys))
  t.equal(relay.processes(), 1)
  relay.onAnswers({ answers: [], recalled: ['k', 'other'], processes: 6 })
  t.equal(relay.processes(), 6)
  t.same(released, [], 'grants of the same message are noted first')
  await setImmediate()
  t.same(released, ['k', 'other'])
})
