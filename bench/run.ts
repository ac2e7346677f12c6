/** `npm run bench`: measures the gateway beside its peers, or beside another checkout. */
import { loadavg } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { against } from './against.ts'
import { cases, type Stage, type Table } from './cases.ts'
import { aloneAfterMs } from './gateway.ts'
import { preparePlace } from './place.ts'
import { prepare } from './prepare.ts'
import type { Figure } from './rounds.ts'
import { startSubject, type Subject, type SubjectName } from './subjects.ts'

const usage = `Usage: npm run bench -- [OPTIONS]

  --case NAME    only this case; may be given again: ${Object.keys(cases).join(', ')}
  --against DIR  this gateway beside that of another checkout, by turns
  --rounds N     how often everybody has a turn (default 15; 50 with --against)
  --quick        short turns, 3 rounds: for a first look
`
const { values: given } = parseArgs({
  options: {
    case: { type: 'string', multiple: true },
    against: { type: 'string' },
    rounds: { type: 'string' },
    quick: { type: 'boolean' },
    help: { type: 'boolean' }
  }
})
const names = given.case ?? (given.against === undefined ? Object.keys(cases) : [])
const wrong = names.find(name => !Object.hasOwn(cases, name))
if (given.help === true || wrong !== undefined) {
  process.stderr.write(wrong === undefined ? usage : `There is no case "${wrong}".\n\n${usage}`)
  process.exit(wrong === undefined ? 0 : 2)
}

const quick = given.quick === true
const [busy = 0] = loadavg()
prepare()
const place = await preparePlace()
const subjects = new Map<SubjectName, Promise<Subject>>()
const usualRounds = given.against === undefined ? 15 : 50
const stage: Stage = {
  place,
  subject: name => {
    const started =
      subjects.get(name) ??
      startSubject(name, place, { restMs: name === 'gateway' ? aloneAfterMs : 0 })
    subjects.set(name, started)
    return started
  },
  rounds: Number(given.rounds ?? (quick ? 3 : usualRounds)),
  ms: quick || given.against !== undefined ? 400 : 1000,
  warmUp: quick ? 8000 : 15_000
}

const shown = (value: number) => (value >= 100 ? value.toFixed(0) : value.toFixed(2))
const spread = ({ median, min, max }: Figure) =>
  min === max ? shown(median) : `${shown(median)} (${shown(min)}–${shown(max)})`
const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`

function print({ title, columns, rows, bounds = [] }: Table): void {
  process.stdout.write(`\n### ${title}\n\n${line(['', ...columns])}`)
  process.stdout.write(line(['---', ...columns.map(() => '---:')]))
  for (const { label, cells } of rows) process.stdout.write(line([label, ...cells.map(spread)]))
  for (const { what, value, most } of bounds.filter(bound => bound.most !== Infinity)) {
    const verdict = value.median <= most ? 'kept' : 'MISSED'
    process.stdout.write(`\n${what}: ${spread(value)}, at most ${shown(most)}: ${verdict}\n`)
  }
}

process.stdout.write(
  `${place.machine}. ${stage.rounds} rounds; the median, and from the least to the most.\n`
)
if (busy > 0.7) process.stdout.write(`Other programs were running (load ${busy.toFixed(1)}).\n`)
if (given.against !== undefined) print(await against(stage, resolve(given.against)))
for (const name of names) {
  const measureCase = cases[name]
  if (measureCase !== undefined) print(await measureCase(stage))
}
await Promise.all([...subjects.values()].map(async subject => await (await subject).stop()))
await place.close()
process.exit()
