/** `npm run fuzz`: attacks a gateway for a while, says what became of it, and ends with 1 where that is not well. */
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { freshSeed } from '../../support/random.ts'
import { endOnSignals } from '../../support/signals.ts'
import { fuzz, readRange } from './fuzz.ts'

const usage = `npm run fuzz -- [--seconds 60] [--seed N] [--gateway DIR] [--replay FIRST-LAST]

  --seconds   how long the attack lasts
  --seed      the same requests and faults in the same order; another one each run without it
  --gateway   the checkout that is attacked; this one without it
  --replay    only these requests of that seed, again and again
`

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string' },
    gateway: { type: 'string', default: '.' },
    replay: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false }
  }
})

const write = (line: string) => {
  process.stdout.write(`${line}\n`)
}

async function main(): Promise<number> {
  if (values.help) {
    write(usage)
    return 0
  }
  const seed = Number(values.seed ?? freshSeed())
  const seconds = Number(values.seconds)
  const replay = values.replay === undefined ? undefined : readRange(values.replay)
  const isReadable = values.replay === undefined || replay !== undefined
  if (!isReadable || !Number.isSafeInteger(seed) || !(seconds > 0 && seconds < Infinity)) {
    process.stderr.write(usage)
    return 2
  }
  const checkout = resolve(values.gateway)
  write(`fuzz: seed ${seed}, ${seconds} s, ${checkout}`)
  const undo: Array<() => unknown> = []
  const cleanUp = async () => {
    for (const step of undo.splice(0).toReversed()) await step()
  }
  endOnSignals(cleanUp)
  try {
    const report = await fuzz(step => undo.push(step), {
      checkout,
      seed,
      seconds,
      ...(replay !== undefined && { replay }),
      tell: write
    })
    const {
      problems,
      lastRequests,
      lastNumbers,
      lastFaults,
      lastLines,
      complaints,
      stacks,
      ...figures
    } = report
    write(JSON.stringify(figures))
    if (problems.length === 0) {
      write('fuzz: all is well')
      return 0
    }
    const section = (title: string, lines: readonly string[]) =>
      write([title, ...lines].join('\n  '))
    section('The last requests:', lastRequests)
    section('What happened around the gateway last:', lastFaults)
    section('The gateway said last:', lastLines)
    section('With a stack it said:', stacks)
    section('On its standard error:', complaints)
    section(`fuzz: seed ${seed}, ${report.seconds.toFixed(1)} s:`, problems)
    write(`again:  npm run fuzz -- --seed ${seed} --seconds ${seconds}`)
    write(`replay: npm run fuzz -- --seed ${seed} --replay ${lastNumbers.join('-')}`)
    return 1
  } finally {
    await cleanUp()
  }
}

process.exit(await main())
