/** `npm run soak`: people use two replicas for a long time, or through one scenario; ends with 1 where one was told wrong. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { freshSeed } from '../../support/random.ts'
import { endOnSignals } from '../../support/signals.ts'
import { scenarios } from './scenarios.ts'
import { soak } from './soak.ts'

const usage = `npm run soak -- [--minutes 20 | --scenario NAME] [--seed N] [--gateway DIR]

  --minutes   mixed traffic and trouble for so long
  --scenario  one of ${Object.keys(scenarios).join(', ')}
  --gateway   the checkout that runs; this one without it
`

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '20' },
    scenario: { type: 'string' },
    seed: { type: 'string' },
    gateway: { type: 'string', default: '.' },
    help: { type: 'boolean', short: 'h', default: false }
  }
})

const began = performance.now()
const write = (line: string) => {
  process.stdout.write(`${line}\n`)
}
const tell = (line: string) =>
  write(`${((performance.now() - began) / 1000).toFixed(0)} s: ${line}`)

async function main(cleanUp: (undo: () => unknown) => void): Promise<number> {
  const seed = Number(values.seed ?? freshSeed())
  const minutes = Number(values.minutes)
  const scenario = values.scenario === undefined ? undefined : scenarios[values.scenario]
  const isUnknown = values.scenario !== undefined && scenario === undefined
  if (values.help || isUnknown || !Number.isFinite(seed) || !(minutes > 0)) {
    process[values.help ? 'stdout' : 'stderr'].write(usage)
    return values.help ? 0 : 2
  }
  write(`soak: ${values.scenario ?? `${minutes} minutes`}, seed ${seed}`)
  const options = {
    seed,
    checkout: resolve(values.gateway),
    tell,
    cleanUp
  }
  const { judge, ...figures } =
    scenario === undefined ? await soak(options, minutes) : { judge: await scenario(options) }
  write(
    JSON.stringify({
      ...figures,
      counts: judge.counts,
      stalestMs: judge.stalestMs(),
      lost: judge.lost()
    })
  )
  for (const problem of judge.problems) write(`wrong: ${problem}`)
  write(
    judge.problems.length === 0
      ? 'soak: all is well'
      : `soak: ${judge.problems.length} problems, seed ${seed}`
  )
  return judge.problems.length === 0 ? 0 : 1
}

const undo: Array<() => unknown> = []
const cleanUp = async () => {
  for (const step of undo.splice(0).toReversed()) await step()
}
endOnSignals(cleanUp)
let code = 1
try {
  code = await main(step => undo.push(step))
} finally {
  await cleanUp()
}
process.exit(code)
