/** `npm run bench`: measures the gateway and its peers, and writes what was found. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { against } from './against.ts'
import { cases, furtherCases, type Outcome } from './cases.ts'
import { aloneAfterMs } from './gateway.ts'
import { preparePlace } from './place.ts'
import { prepare, root } from './prepare.ts'
import { chart, markdown } from './report.ts'
import { isGateway, isThere, startSubject, type Subject, type SubjectName } from './subjects.ts'

const here = import.meta.dirname
const allCases = { ...cases, ...furtherCases }
const usage = `Usage: npm run bench -- [OPTIONS]

  --case NAME    only this case; may be given again: ${Object.keys(cases).join(', ')}
                 and, only when asked for: ${Object.keys(furtherCases).join(', ')}
  --against DIR  this gateway beside that of another checkout, by turns
  --rounds N     how often everybody has a turn (default 15; 50 for ladder, pieces and --against)
  --quick        short turns, 3 rounds: for a first look
  --minutes N    how long the load of the case memory lasts (default 0.25)
  --out DIR      where to write (default: results, or results/partial when not all was measured)
`

const { values: given } = parseArgs({
  options: {
    case: { type: 'string', multiple: true },
    against: { type: 'string' },
    rounds: { type: 'string' },
    quick: { type: 'boolean' },
    minutes: { type: 'string' },
    out: { type: 'string' },
    help: { type: 'boolean' }
  }
})
const other = given.against
const names = given.case ?? (other === undefined ? Object.keys(cases) : [])
const wrong = names.find(name => !Object.hasOwn(allCases, name))
if (given.help === true || wrong !== undefined) {
  process.stderr.write(wrong === undefined ? usage : `There is no case "${wrong}".\n\n${usage}`)
  process.exit(wrong === undefined ? 0 : 2)
}

const quick = given.quick === true
const busyBefore = loadavg()
prepare()
const place = await preparePlace()
const subjects = new Map<SubjectName, Promise<Subject>>()
const stage = {
  place,
  subject: (name: SubjectName) => {
    const restMs = isGateway(name) ? aloneAfterMs : 0
    const started = subjects.get(name) ?? startSubject(name, place, { restMs })
    subjects.set(name, started)
    return started
  },
  rounds: Number(given.rounds ?? (quick ? 3 : 15)),
  pairRounds: Number(given.rounds ?? (quick ? 5 : 50)),
  pairMs: 400,
  ms: quick ? 700 : 1000,
  warmUp: quick ? 8000 : 15_000,
  minutes: Number(given.minutes ?? (quick ? 0.1 : 0.25))
}
for (const name of ['nginx', 'haproxy'] as const) {
  if (!isThere(name)) process.stderr.write(`${name} is not installed: left out\n`)
}

const outcomes: Record<string, Outcome> = {}
async function run(name: string, measureCase: (typeof cases)[string]): Promise<void> {
  const began = performance.now()
  process.stderr.write(`${name} … `)
  outcomes[name] = await measureCase(stage)
  process.stderr.write(`${((performance.now() - began) / 1000).toFixed(0)} s\n`)
}
if (other !== undefined) await run('against', () => against(stage, resolve(other)))
for (const name of names) {
  const measureCase = allCases[name]
  if (measureCase !== undefined) await run(name, measureCase)
}
await Promise.all([...subjects.values()].map(async subject => await (await subject).stop()))
await place.close()

const [busy = 0] = busyBefore
const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], {
  cwd: root,
  encoding: 'utf8'
}).stdout.trim()
const about = `${place.machine}. ${busy > 0.7 ? `Other programs were running (load ${busy.toFixed(1)}). ` : ''}${stage.rounds} rounds, ${new Date().toISOString().slice(0, 10)}${commit === '' ? '' : `, commit ${commit}`}.`
const text = markdown(Object.values(outcomes), about)
const folder =
  given.out ??
  join(here, 'results', given.case === undefined && other === undefined && !quick ? '' : 'partial')
mkdirSync(folder, { recursive: true })
writeFileSync(
  join(folder, 'bench.json'),
  `${JSON.stringify({ about, cases: outcomes }, undefined, 2)}\n`
)
writeFileSync(join(folder, 'bench.md'), text)
// Without goals there is nothing to draw.
if (Object.values(outcomes).some(({ verdicts }) => verdicts.length > 0)) {
  writeFileSync(join(folder, 'bench.svg'), chart(Object.values(outcomes), about))
}
process.stdout.write(text)
process.exit()
