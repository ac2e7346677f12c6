/** Memory that reloads leave behind: resident memory before and after them, under light load. */
import { setTimeout as wait } from 'node:timers/promises'
import { residentMegabytes } from './accounting.ts'
import { bounds } from './bounds.ts'
import type { Outcome, Stage } from './cases.ts'
import { figure } from './rounds.ts'
import { startSubject } from './subjects.ts'

const reloads = 20
const light = { connections: 16, rate: 200 }
const warmUpMs = 10_000
const pauseMs = 1000

export async function memoryOfReloads({ place }: Stage): Promise<Outcome> {
  const subject = await startSubject('gateway', place, { restMs: 2000 })
  const { pid, origin, reload, restMegabytes } = subject
  if (reload === undefined) throw new Error('the gateway cannot be reloaded')
  const load = (ms: number) =>
    place.load({
      origin,
      pid,
      requests: subject.requests('/api/notices/small', light.connections),
      warmMs: 0,
      ms,
      rate: light.rate
    })
  const megabytes: number[] = []
  const read = () => megabytes.push(residentMegabytes(pid))
  await load(warmUpMs)
  read()
  await Promise.all([
    load((reloads + 1) * pauseMs),
    (async () => {
      for (let version = 1; version <= reloads; version++) {
        await reload(version)
        await wait(pauseMs)
        if (version === reloads / 2 || version === reloads) read()
      }
    })()
  ])
  // The thread that tries configs ends a few seconds after its last one.
  await wait(12_000)
  read()
  await subject.stop()
  const [before = NaN, , , after = NaN] = megabytes
  return {
    title: `Resident memory, ${reloads} reloads at ${light.rate} requests a second`,
    columns: [
      'at rest, MB',
      'under load, MB',
      `after ${reloads / 2} reloads, MB`,
      `after ${reloads}, MB`,
      'at rest again, MB'
    ],
    rows: [
      {
        label: 'Console Gateway',
        cells: [restMegabytes, ...megabytes].map(each => figure([each]))
      }
    ],
    verdicts: [
      {
        what: `RSS after ${reloads} reloads, more than before under the same load`,
        value: figure([(after / before - 1) * 100]),
        unit: '%',
        ...bounds.residentGrowth
      }
    ]
  }
}
