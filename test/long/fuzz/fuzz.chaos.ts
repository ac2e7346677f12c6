/** `npm run fuzz`: attacks a gateway for a while, and says what became of it. */
import t from 'tap'
import { freshSeed } from '../../support/random.ts'
import { fuzz } from './fuzz.ts'

const seconds = Number(process.env['FUZZ_SECONDS'] ?? 60)
const seed = Number(process.env['FUZZ_SEED'] ?? freshSeed())

console.error(`FUZZ_SEED=${seed} FUZZ_SECONDS=${seconds}`)

t.setTimeout((seconds + 240) * 1000)
t.test(`${seconds} seconds of an attack (seed ${seed}): all is as it was before`, async t => {
  const report = await fuzz(t.after, { seed, seconds })
  const { problems, conversations, answers, troubles, slowestMs, ...last } = report
  t.same(problems, [])
  t.ok((answers['200'] ?? 0) > 0, 'there was life')
  t.comment(JSON.stringify({ seed, conversations, answers, troubles, slowestMs }))
  if (problems.length > 0) t.comment(last)
})
