/** `npm run bench:gate`: fails when a request costs more CPU time, beside the bare plugin by turns, than it must. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { bounds } from './bounds.ts'
import type { Outcome } from './cases.ts'
import { aloneAfterMs } from './gateway.ts'
import { ladder, mostGrown } from './ladder.ts'
import { preparePlace } from './place.ts'
import { prepare } from './prepare.ts'
import { isKept } from './report.ts'
import { type Contestant, measure, paired } from './rounds.ts'
import { startSubject } from './subjects.ts'

const requests = [
  { what: 'signed-in GET', path: '/api/notices/small', must: bounds.signedIn.must },
  { what: 'shaped and enveloped', path: '/api/shaped/small', must: bounds.shaped.must },
  { what: 'public GET', path: '/api/public/notices/small', must: bounds.public.must }
]

prepare(false)
const place = await preparePlace()
const gateway = await startSubject('gateway', place, { restMs: aloneAfterMs })
const plugin = await startSubject('plugin', place)
const contestants: Contestant[] = [
  ...requests.map(({ what, path }) => ({ label: what, subject: gateway, path })),
  { label: 'plugin', subject: plugin, path: '/api/notices/small' }
]
const samples = await measure(place, contestants, {
  rounds: 15,
  connections: 64,
  warmMs: 150,
  ms: 400,
  warmUp: 10_000,
  warmUpMs: 6000
})
const micros = (label: string) => (samples.get(label) ?? []).map(({ cpuMicros }) => cpuMicros)
let failed = 0
for (const { what, must } of requests) {
  const value = paired(micros(what), micros('plugin'), (a, b) => a / b)
  const held = isKept({ value, must })
  if (!held) failed++
  process.stdout.write(
    `${held ? 'ok    ' : 'FAILED'} ${what}: ${value.median.toFixed(2)}, upper quartile ${value.upperQuartile.toFixed(2)}, of the bare plugin's CPU time; at most ${must.toFixed(2)}\n`
  )
}
await Promise.all([gateway, plugin].map(subject => subject.stop()))
if (failed > 0) process.stdout.write(await dearestStep())
await place.close()
process.exit(failed === 0 ? 0 : 1)

/** The step of the ladder that grew most since the results were written. */
async function dearestStep(): Promise<string> {
  const file = join(import.meta.dirname, 'results', 'ladder', 'bench.json')
  const { about, cases } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly about: string
    readonly cases: { readonly ladder: Outcome }
  }
  const { rows } = await ladder({ place, warmUp: 10_000, pairRounds: 15, pairMs: 400 })
  const grown = mostGrown(cases.ladder.rows, rows)
  if (grown === undefined) return 'the ladder has other steps than that of the results\n'
  const { label, before, now } = grown
  const percent = (part: number) => `${(part * 100).toFixed(1)} %`
  const was = `${percent(before)} in the results (${about})`
  return `most grown: "${label}" adds ${percent(now)} of a bare handler's CPU time, ${was}\n`
}
