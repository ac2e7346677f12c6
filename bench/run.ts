/** `npm run bench`: measures the gateway beside its peers, or beside another checkout. See README.md. */
import { loadavg } from 'node:os'
import { resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { against, cases, type Stage, type Table } from './cases.ts'
import type { Figure } from './measure.ts'
import { preparePlace } from './place.ts'
import { startSubject, type Subject, type SubjectName } from './subjects.ts'

const { values: given } = parseArgs({
  options: {
    case: { type: 'string', multiple: true },
    against: { type: 'string' },
    rounds: { type: 'string' }
  }
})
const names = given.case ?? (given.against === undefined ? Object.keys(cases) : [])
const wrong = names.find(name => !Object.hasOwn(cases, name))
if (wrong !== undefined) {
  process.stderr.write(`There is no case "${wrong}": ${Object.keys(cases).join(', ')}.\n`)
  process.exit(2)
}

/**
 * A gateway that has run for less takes other processes into account that may share its counters,
 * and asks Redis five times as often.
 */
const aloneAfterMs = 11_000

const [busy = 0] = loadavg()
const place = await preparePlace()
const subjects = new Map<SubjectName, Promise<Subject>>()
const stage: Stage = {
  place,
  subject: name => {
    const restMs = name === 'gateway' ? aloneAfterMs : 0
    const started = subjects.get(name) ?? startSubject(name, place, { restMs })
    subjects.set(name, started)
    return started
  },
  pace: {
    rounds: Number(given.rounds ?? (given.against === undefined ? 15 : 50)),
    connections: 64,
    warmUp: 15_000,
    warmMs: 100,
    ms: given.against === undefined ? 1000 : 400
  }
}

const shown = (value: number) => (value >= 100 ? value.toFixed(0) : value.toFixed(2))
const spread = ({ median, min, max }: Figure) =>
  min === max ? shown(median) : `${shown(median)} (${shown(min)}–${shown(max)})`
const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |\n`

function print({ title, columns, rows, bounds }: Table): void {
  process.stdout.write(`\n### ${title}\n\n${line(['', ...columns])}`)
  process.stdout.write(line(['---', ...columns.map(() => '---:')]))
  for (const { label, cells } of rows) process.stdout.write(line([label, ...cells.map(spread)]))
  for (const { what, value, most } of bounds.filter(bound => bound.most !== Infinity)) {
    const verdict = value.median <= most ? 'kept' : 'MISSED'
    process.stdout.write(`\n${what}: ${spread(value)}, at most ${shown(most)}: ${verdict}\n`)
  }
}

const { rounds } = stage.pace
process.stdout.write(`${place.machine}. ${rounds} rounds; median, and from least to most.\n`)
if (busy > 0.7) process.stdout.write(`Other programs were running (load ${busy.toFixed(1)}).\n`)
if (given.against !== undefined) print(await against(stage, resolve(given.against)))
for (const name of names) {
  const measureCase = cases[name]
  if (measureCase !== undefined) print(await measureCase(stage))
}
for (const subject of subjects.values()) await (await subject).stop()
await place.close()
process.exit()
