/** Two checkouts by turns: what a change makes of a request. */
import type { Stage, Table } from './cases.ts'
import { build } from './prepare.ts'
import { type Contestant, interval, measure } from './rounds.ts'
import { startSubject, type Subject } from './subjects.ts'

const requests = [
  ['signed in', '/api/notices/small'],
  ['shaped', '/api/shaped/small'],
  ['public', '/api/public/notices/small']
] as const

/** The order of starts matters by a few per cent, so each checkout starts first once. */
const starts = ['this', 'other', 'other', 'this'] as const

export async function against(stage: Stage, folder: string): Promise<Table> {
  build(folder)
  const gateways: Array<{ readonly whose: (typeof starts)[number]; readonly subject: Subject }> = []
  for (const whose of starts) {
    const gateway = whose === 'other' ? { folder } : {}
    gateways.push({ whose, subject: await startSubject('gateway', stage.place, { gateway }) })
  }
  const rows = []
  for (const [label, path] of requests) {
    const contestants = gateways.map(({ subject }, index): Contestant => {
      return { label: String(index), subject, path }
    })
    const samples = await measure(stage.place, contestants, {
      rounds: stage.rounds,
      connections: 64,
      warmMs: 100,
      ms: stage.ms,
      warmUp: stage.warmUp
    })
    const microsOf = (whose: 'this' | 'other') => {
      const [a = [], b = []] = gateways.flatMap((gateway, index) =>
        gateway.whose === whose ? [samples.get(String(index)) ?? []] : []
      )
      return a.map(({ cpuMicros }, round) => (cpuMicros + (b[round]?.cpuMicros ?? NaN)) / 2)
    }
    const micros = microsOf('this')
    const others = microsOf('other')
    const ratios = micros.map((value, round) => value / (others[round] ?? NaN))
    rows.push({ label, cells: [interval(micros), interval(others), interval(ratios)] })
  }
  await Promise.all(gateways.map(({ subject }) => subject.stop()))
  return {
    title: `This checkout beside ${folder}, by turns; in brackets the 95 % interval of the median`,
    columns: ['CPU µs', 'CPU µs there', 'ratio'],
    rows
  }
}
