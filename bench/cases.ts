/** The cases: what is asked of whom. Each gives a table, and ratios that are held to a bound. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Place } from './place.ts'
import { type Figure, figure, measure, over, paired, type Pace, type Sample } from './rounds.ts'
import { startSubject, type Subject, type SubjectName, titles } from './subjects.ts'

export interface Table {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: ReadonlyArray<{ readonly label: string; readonly cells: readonly Figure[] }>
  /** The most that a ratio, or a number of MB or ms, may be. */
  readonly bounds?: ReadonlyArray<{
    readonly what: string
    readonly value: Figure
    readonly most: number
  }>
}

export interface Stage {
  readonly place: Place
  /** Started at the first use and kept: whoever runs is warm. */
  readonly subject: (name: SubjectName) => Promise<Subject>
  readonly rounds: number
  readonly ms: number
  readonly warmUp: number
}

type Case = (stage: Stage) => Promise<Table>

const paceOf = ({ rounds, ms, warmUp }: Stage): Pace => ({
  rounds,
  ms,
  warmUp,
  connections: 64,
  warmMs: 200
})

/** CPU of a request beside the bare plugin, which passes the answer as it is. */
function beside(what: string, path: string, most: number, names: readonly SubjectName[]): Case {
  return async stage => {
    const contestants = await Promise.all(
      names.map(async name => ({
        label: titles[name],
        subject: await stage.subject(name),
        path: name === 'gateway' ? path : path.replace('/shaped/', '/notices/')
      }))
    )
    const samples = await measure(stage.place, contestants, paceOf(stage))
    const of = (label: string, member: keyof Sample) =>
      (samples.get(label) ?? []).map(sample => sample[member])
    const cpu = (label: string) => of(label, 'cpuMicros')
    const ratio = (label: string) => paired(cpu(label), cpu(titles.plugin), over)
    const rows = contestants.map(({ label }) => ({
      label,
      cells: [
        figure(cpu(label)),
        ratio(label),
        ...(['perSecond', 'p50Ms', 'p99Ms', 'megabytes'] as const).map(member =>
          figure(of(label, member))
        )
      ]
    }))
    const bounds = [{ what: `${what}, CPU beside the plugin`, value: ratio(titles.gateway), most }]
    if (names.includes('express')) {
      const value = paired(cpu(titles.gateway), cpu(titles.express), over)
      bounds.push({ what: `${what}, CPU beside the Express stack`, value, most: 1 / 2.3 })
    }
    const columns = ['CPU µs', 'ratio', 'requests/s', 'p50 ms', 'p99 ms', 'RSS MB']
    return { title: what, columns, rows, bounds }
  }
}

async function start(stage: Stage): Promise<Table> {
  const names = ['gateway', 'plugin', 'express'] as const
  const times = new Map<SubjectName, number[]>(names.map(name => [name, []]))
  const atRest: number[] = []
  for (let round = 0; round < stage.rounds; round++) {
    for (const name of names) {
      const subject = await startSubject(name, stage.place, {
        restMs: name === 'gateway' ? 2000 : 0
      })
      times.get(name)?.push(subject.startMs)
      if (name === 'gateway') atRest.push(subject.restMegabytes)
      await subject.stop()
    }
  }
  const of = (name: SubjectName) => times.get(name) ?? []
  return {
    title: 'Start to ready, and memory at rest',
    columns: ['ms'],
    rows: names.map(name => ({ label: titles[name], cells: [figure(of(name))] })),
    bounds: [
      {
        what: 'start beside the plugin',
        value: paired(of('gateway'), of('plugin'), over),
        most: 1.2
      },
      { what: 'RSS at rest, MB', value: figure(atRest), most: 95 }
    ]
  }
}

async function transfer(stage: Stage): Promise<Table> {
  const names = ['gateway', 'plugin'] as const
  const contestants = await Promise.all(
    names.map(async name => ({
      label: titles[name],
      subject: await stage.subject(name),
      path: `/api/files/${100 * 1024 * 1024}`
    }))
  )
  const pace = { rounds: stage.rounds, connections: 1, warmMs: 0, ms: 60_000, count: 2, warmUp: 2 }
  const samples = await measure(stage.place, contestants, pace)
  const cpu = (label: string) => (samples.get(label) ?? []).map(({ cpuMicros }) => cpuMicros / 1000)
  const value = paired(cpu(titles.gateway), cpu(titles.plugin), over)
  return {
    title: 'Download of 100 MB',
    columns: ['CPU ms', 'seconds', 'RSS MB'],
    rows: contestants.map(({ label }) => ({
      label,
      cells: [
        figure(cpu(label)),
        figure((samples.get(label) ?? []).map(({ perSecond }) => 1 / perSecond)),
        figure((samples.get(label) ?? []).map(({ megabytes }) => megabytes))
      ]
    })),
    bounds: [{ what: 'download, CPU beside the plugin', value, most: 1.1 }]
  }
}

/** The longest turn of the event loop while the config is replaced. */
async function reload(stage: Stage): Promise<Table> {
  const kinds = {
    'demo’s size': {},
    '200 routes': { routes: 200 },
    '100 expectations': { expectations: 100 }
  }
  const rows = []
  for (const [label, size] of Object.entries(kinds)) {
    const subject = await startSubject('gateway', stage.place, { gateway: { size } })
    await subject.longestTurn()
    const [turns, times]: [number[], number[]] = [[], []]
    for (let version = 1; version <= Math.max(5, stage.rounds); version++) {
      const began = performance.now()
      await subject.reload(version)
      times.push(performance.now() - began)
      await wait(500)
      turns.push(await subject.longestTurn())
    }
    await subject.stop()
    rows.push({ label, cells: [figure(turns), figure(times)] })
  }
  return {
    title: 'Reloads',
    columns: ['longest turn of the event loop, ms', 'until the answer, ms'],
    rows,
    bounds: rows.map(({ label, cells: [value] }) => ({
      what: `reload with ${label}, longest turn in ms`,
      value: value as Figure,
      most: 30
    }))
  }
}

export const cases: Readonly<Record<string, Case>> = {
  'signed-in': beside('Signed-in GET, 0.7 KB', '/api/notices/small', 1.15, [
    'gateway',
    'plugin',
    'express'
  ]),
  'shaped': beside('The same, shaped', '/api/shaped/small', 1.35, ['gateway', 'plugin']),
  'shaped-20': beside('Shaped, 20 KB', '/api/shaped/medium', Infinity, ['gateway', 'plugin']),
  'public': beside('Public GET, 0.7 KB', '/api/public/notices/small', 0.95, ['gateway', 'plugin']),
  start,
  transfer,
  reload
}
