/** Lines of sign-ins, in whatever order they come, end and leave. */
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import t from 'tap'
import { createMemoryLockouts } from '../../src/limits/lockouts.ts'
import { SignInLines } from '../../src/limits/sign-in-line.ts'
import { bucketOf } from '../ports/lockouts.ts'
import { stopClock } from '../support/clock.ts'

const hour = 3_600_000
const memory = createMemoryLockouts()
let runs = 0

/** Sign-ins at once; each takes some turns to be judged, and may leave while it waits. */
async function signInAll(
  signIns: ReadonlyArray<{ account: number; right: boolean; turns: number; leaves?: number }>
) {
  // As Redis does, it answers later.
  const lines = new SignInLines({
    take: async buckets => (await turn(), await memory.take(buckets))
  })
  const run = runs++
  let running = 0
  let most = 0
  const answers = await Promise.all(
    signIns.map(async ({ account, right, turns, leaves }) => {
      const buckets = [
        bucketOf(`address ${run}`, 4, hour),
        bucketOf(`account ${run} ${account}`, 2, hour)
      ]
      const client = new AbortController()
      const leave = async () => {
        for (let n = 0; n < (leaves ?? 0); n++) await turn()
        client.abort(new Error('left'))
      }
      if (leaves !== undefined) void leave()
      try {
        const taken = await lines.take(buckets, client.signal)
        if (taken === 'time is over') return 'time is over'
        if (!taken.isTaken) return 'locked'
        most = Math.max(most, ++running)
        for (let n = 0; n < turns; n++) await turn()
        running--
        if (right) {
          await turn()
          await memory.giveBack(buckets, taken)
        }
        lines.end(buckets, right ? buckets : [])
        return right ? 'right' : 'wrong'
      } catch (error) {
        return (error as Error).message
      }
    })
  )
  for (let n = 0; n < 20; n++) await turn()
  const count = (answer: string) => answers.filter(each => each === answer).length
  return { count, most, lines: lines.size, total: answers.length }
}

const signIn = (right: fc.Arbitrary<boolean>) =>
  fc.record(
    { account: fc.nat(3), right, turns: fc.nat(4), leaves: fc.nat(12) },
    { requiredKeys: ['account', 'right', 'turns'] }
  )

t.test('right ones all come in unless they leave, and no line is left', async t => {
  stopClock(t.after)
  await fc.assert(
    fc.asyncProperty(fc.array(signIn(fc.constant(true)), { maxLength: 40 }), async signIns => {
      const { count, most, lines, total } = await signInAll(signIns)
      return count('right') + count('left') === total && most <= 4 && lines === 0
    }),
    { numRuns: 200 }
  )
})

t.test('of wrong ones no more are judged than may fail, whatever others do', async t => {
  stopClock(t.after)
  await fc.assert(
    fc.asyncProperty(fc.array(signIn(fc.boolean()), { maxLength: 40 }), async signIns => {
      const { count, most, lines, total } = await signInAll(signIns)
      const judged = count('right') + count('wrong') + count('locked') + count('left')
      return judged === total && count('wrong') <= 4 && most <= 4 && lines === 0
    }),
    { numRuns: 200 }
  )
})
