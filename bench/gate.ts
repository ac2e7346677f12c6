/** `npm run bench:gate`: fails when a request costs clearly more CPU time, beside the bare plugin by turns, than it may. */
import { preparePlace } from './place.ts'
import { prepare } from './prepare.ts'
import { type Contestant, measure, paired } from './rounds.ts'
import { startSubject } from './subjects.ts'

/** Beyond what the bench demands: a busy machine must not fail a sound change. */
const margin = 1.25
const bounds = [
  { what: 'signed-in GET', path: '/api/notices/small', must: 1 },
  { what: 'shaped and enveloped', path: '/api/shaped/small', must: 1.2 },
  { what: 'public GET', path: '/api/public/notices/small', must: 0.9 }
]

prepare(false)
const place = await preparePlace()
const gateway = await startSubject('gateway', place)
const plugin = await startSubject('plugin', place)
const contestants: Contestant[] = [
  ...bounds.map(({ what, path }) => ({ label: what, subject: gateway, path })),
  { label: 'plugin', subject: plugin, path: '/api/notices/small' }
]
const samples = await measure(place, contestants, {
  rounds: 5,
  connections: 64,
  warmMs: 150,
  ms: 900,
  warmUp: 10_000,
  warmUpMs: 6000
})
const micros = (label: string) => (samples.get(label) ?? []).map(({ cpuMicros }) => cpuMicros)
let failed = 0
for (const { what, must } of bounds) {
  const { median, min, max } = paired(micros(what), micros('plugin'), (a, b) => a / b)
  const held = median <= must * margin
  if (!held) failed++
  process.stdout.write(
    `${held ? 'ok    ' : 'FAILED'} ${what}: ${median.toFixed(2)} (${min.toFixed(2)}–${max.toFixed(2)}) of the bare plugin's CPU time; at most ${(must * margin).toFixed(2)}\n`
  )
}
await Promise.all([gateway, plugin].map(subject => subject.stop()))
await place.close()
process.exit(failed === 0 ? 0 : 1)
