/** `npm run soak`: people use two replicas for long; ends with 1 where one was told wrong. */
import t from 'tap'
import { freshSeed } from '../../support/random.ts'
import { soak } from './soak.ts'

const minutes = Number(process.env['SOAK_MINUTES'] ?? 20)
const seed = Number(process.env['SOAK_SEED'] ?? freshSeed())

t.setTimeout((minutes + 20) * 60_000)
t.test(`${minutes} minutes of use (SOAK_SEED=${seed}): nobody is told wrong`, async t => {
  const tell = (line: string) => t.comment(line)
  const { judge, trouble } = await soak(t.after, { seed, minutes, tell })
  t.same(judge.problems, [])
  t.comment(JSON.stringify({ trouble, counts: judge.counts, stalestMs: judge.stalestMs() }))
})
