import t from 'tap'
import { fuzz } from './fuzz.ts'
import { freshSeed } from '../../support/random.ts'

const seconds = Number(process.env['FUZZ_SECONDS'] ?? 60)
const seed = Number(process.env['FUZZ_SEED'] ?? freshSeed())

console.error(`FUZZ_SEED=${seed} FUZZ_SECONDS=${seconds}`)

t.test(
  `${seconds} seconds of an attack made from a grammar (seed ${seed}): all is as it was before`,
  async t => {
    const report = await fuzz(t.after, { checkout: '.', seed, seconds })
    const { problems, conversations, answers, faults, slowestMs, ...rest } = report
    t.same(problems, [])
    t.ok((answers['200'] ?? 0) > 0, 'there was life')
    t.comment(JSON.stringify({ seed, conversations, answers, faults, slowestMs }))
    if (problems.length > 0) {
      t.comment(`again: npm run fuzz -- --seed ${seed} --seconds ${seconds}`, rest)
    }
  }
)
