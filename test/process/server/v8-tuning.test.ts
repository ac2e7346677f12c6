import { fork } from 'node:child_process'
import { once } from 'node:events'
import t from 'tap'
import { nextGrowth } from '../../../src/process/server/v8-tuning.ts'

t.test(
  'collections that come too often give the heap more room, rare ones take it back',
  async t => {
    const after = (percent: number, ...gaps: number[]) => gaps.reduce(nextGrowth, percent)
    t.equal(after(30, 4000, 4000), 30, 'every few seconds is as it should be')
    t.equal(after(30, 60_000), 30, 'not below the least')
    t.equal(after(30, 100), 60)
    t.equal(after(30, 100, 100, 100, 100, 100, 100), 300, 'not above the most')
    t.equal(after(300, 2000), 300)
    t.equal(after(300, 4000, 4000), 75)
    t.equal(after(300, Infinity, Infinity, Infinity, Infinity), 30)
  }
)

t.test('each full collection is reported, and young ones are not', async t => {
  const child = fork(new URL('../../support/collections.ts', import.meta.url), {
    execArgv: ['--expose-gc']
  })
  const [reported] = (await once(child, 'message')) as [{ young: number; full: number }]
  t.same(reported, { young: 0, full: 3 })
})

t.test(
  'buffers in transit are freed without full collections',
  { skip: !process.versions.v8.startsWith('13.') && 'this V8 has no such setting' },
  async t => {
    const child = fork(new URL('../../support/transit.ts', import.meta.url), { execArgv: [] })
    const [{ major, minor }] = (await once(child, 'message')) as [{ major: number; minor: number }]
    // 800 MB: a young collection for each 8 MB. Untuned there are 10 full ones, and next to none of the others.
    t.ok(minor >= 50, `${minor} young collections`)
    t.ok(major <= 8, `${major} full collections`)
  }
)
