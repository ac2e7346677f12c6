/** Entries on their way from a worker to the primary: bounded, in order, and counted where lost. */
import { fork } from 'node:child_process'
import type { Worker } from 'node:cluster'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import type { AuditEntry } from '../../../src/observability/audit/entry.ts'
import { serveLedger } from '../../../src/process/cluster/ledger-relay.ts'
import type { Audited, CallWorker } from '../../../src/process/cluster/rpc.ts'
import { until } from '../../support/until.ts'

const program = join(import.meta.dirname, '../../support/relay-child.ts')

/** A primary that answers when it is told to. */
function serve(t: Test, entries: number) {
  const child = fork(program, [String(entries)])
  t.teardown(() => child.kill('SIGKILL'))
  const taken: AuditEntry[] = []
  const losses: unknown[] = []
  const replies: Audited[] = []
  let isAnswering = false
  const answer = () => {
    for (const reply of replies.splice(0)) child.send(reply)
  }
  const call = (async (_name: string, reply: Audited) => {
    replies.push(reply)
    if (isAnswering) answer()
  }) as unknown as CallWorker
  const ledger = {
    append: (entry: AuditEntry) => void taken.push(entry),
    commit: async () => 0,
    lose: (count: number, detail: object) => void losses.push({ count, ...detail })
  }
  serveLedger(child as unknown as Worker, 1, ledger, call)
  const begin = () => {
    isAnswering = true
    answer()
  }
  return { taken, losses, replies, begin }
}

t.test('a primary that answers late gets at most four messages at once', async t => {
  const { taken, losses, replies, begin } = serve(t, 6000)
  await until('four messages have come', () => replies.length >= 4)
  t.equal(taken.length, 4000, 'a thousand entries each')
  begin()
  await until('the rest has come', () => taken.length >= 6000)
  t.same(
    taken.map(({ route }) => route),
    Array.from({ length: 6000 }, (_, count) => `route-${count}`)
  )
  t.same(losses, [])
})

t.test('entries without a place are counted, and the primary hears how many', async t => {
  const { taken, losses, begin } = serve(t, 12_345)
  begin()
  await until('all that found a place have come', () => taken.length >= 10_000)
  t.equal(taken.length, 10_000)
  t.same(losses, [{ count: 2345, worker: 1 }])
})
