/** The cases: what is asked of whom. Each gives a table, and ratios that are held to a bound. */
import { setTimeout as wait } from 'node:timers/promises'
import { type Figure, figure, interval, measure, type Pace, ratios } from './measure.ts'
import { build, type Place } from './place.ts'
import { startSubject, type Subject, type SubjectName, titles } from './subjects.ts'

export interface Table {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: ReadonlyArray<{ readonly label: string; readonly cells: readonly Figure[] }>
  /** The most that a ratio, or a number of MB or ms, may be. */
  readonly bounds: ReadonlyArray<{
    readonly what: string
    readonly value: Figure
    readonly most: number
  }>
}

export interface Stage {
  readonly place: Place
  /** Started at the first use and kept: whoever runs is warm. */
  readonly subject: (name: SubjectName) => Promise<Subject>
  readonly pace: Pace
}

type Case = (stage: Stage) => Promise<Table>

const both = ['gateway', 'plugin'] as const

interface Asked extends Partial<Pace> {
  readonly path: string
  /** The most that its CPU time may be beside the plugin's. */
  readonly most: number
  readonly names?: readonly SubjectName[]
  /** Bytes of a body that it is sent. */
  readonly upload?: number
}

/** CPU of a request beside the bare plugin. */
function beside(title: string, { path, most, names = both, upload = 0, ...pace }: Asked): Case {
  return async stage => {
    const contestants = []
    for (const name of names) {
      // The peers pass an answer as it is.
      const own = name === 'gateway' ? path : path.replace('/shaped/', '/notices/')
      contestants.push({
        label: titles[name],
        subject: await stage.subject(name),
        path: own,
        upload
      })
    }
    const of = await measure(stage.place, contestants, { ...stage.pace, ...pace })
    const cpu = (name: SubjectName) => of(titles[name], 'cpuMicros')
    const members = ['perSecond', 'p50Ms', 'p99Ms', 'megabytes'] as const
    const bound = (peer: SubjectName, limit: number) => {
      const value = figure(ratios(cpu('gateway'), cpu(peer)))
      return { what: `${title}, CPU beside ${titles[peer]}`, value, most: limit }
    }
    const bounds = [bound('plugin', most)]
    if (names.includes('express')) bounds.push(bound('express', 1 / 2.3))
    const rows = names.map(name => {
      const cells = [cpu(name), ratios(cpu(name), cpu('plugin'))]
      cells.push(...members.map(member => of(titles[name], member)))
      return { label: titles[name], cells: cells.map(figure) }
    })
    const columns = ['CPU µs', 'ratio', 'requests/s', 'p50 ms', 'p99 ms', 'RSS MB']
    return { title, columns, rows, bounds }
  }
}

async function start({ place, pace }: Stage): Promise<Table> {
  const names = ['gateway', 'plugin', 'express'] as const
  const times: Record<SubjectName, number[]> = { gateway: [], plugin: [], express: [] }
  const atRest: number[] = []
  for (let round = 0; round < pace.rounds; round++) {
    for (const name of names) {
      const subject = await startSubject(name, place, { restMs: name === 'gateway' ? 2000 : 0 })
      times[name].push(subject.startMs)
      if (name === 'gateway') atRest.push(subject.restMegabytes)
      await subject.stop()
    }
  }
  const ratio = figure(ratios(times.gateway, times.plugin))
  return {
    title: 'Start to ready, and memory at rest',
    columns: ['ms'],
    rows: names.map(name => ({ label: titles[name], cells: [figure(times[name])] })),
    bounds: [
      { what: 'start beside the plugin', value: ratio, most: 1.2 },
      { what: 'RSS at rest, MB', value: figure(atRest), most: 95 }
    ]
  }
}

/** The longest turn of the event loop while the config is replaced. */
async function reload({ place, pace }: Stage): Promise<Table> {
  const sizes = {
    'demo’s size': {},
    '200 routes': { routes: 200 },
    '100 expectations': { expectations: 100 }
  }
  const rows = []
  const bounds = []
  for (const [label, size] of Object.entries(sizes)) {
    const subject = await startSubject('gateway', place, { size })
    await subject.longestTurn()
    const [turns, times]: [number[], number[]] = [[], []]
    for (let version = 1; version <= Math.max(5, pace.rounds); version++) {
      const began = performance.now()
      await subject.reload(version)
      times.push(performance.now() - began)
      await wait(500)
      turns.push(await subject.longestTurn())
    }
    await subject.stop()
    rows.push({ label, cells: [figure(turns), figure(times)] })
    const what = `reload with ${label}, longest turn in ms`
    bounds.push({ what, value: figure(turns), most: 30 })
  }
  const columns = ['longest turn of the event loop, ms', 'until the answer, ms']
  return { title: 'Reloads', columns, rows, bounds }
}

const [signedIn, open] = ['/api/notices/small', '/api/public/notices/small']
const [shaped, shaped20] = ['/api/shaped/small', '/api/shaped/medium']
const transferred = 100 * 1024 * 1024
const file = `/api/files/${transferred}`
const ofTransfer = { connections: 1, warmMs: 0, ms: 60_000, count: 2, warmUp: 2 }

export const cases: Readonly<Record<string, Case>> = {
  'signed-in': beside('Signed-in GET, 0.7 KB', {
    path: signedIn,
    most: 1.15,
    names: [...both, 'express']
  }),
  'shaped': beside('The same, shaped', { path: shaped, most: 1.35 }),
  'shaped-20': beside('Shaped, 20 KB', { path: shaped20, most: Infinity }),
  'public': beside('Public GET, 0.7 KB', { path: open, most: 0.95 }),
  'transfer': beside('Download of 100 MB', { path: file, most: 1.1, ...ofTransfer }),
  'upload': beside('Upload of 100 MB', {
    path: '/api/files/upload',
    upload: transferred,
    most: 1.1,
    ...ofTransfer
  }),
  start,
  reload
}

/** Two checkouts by turns: what a change makes of a request. */
export async function against({ place, pace }: Stage, folder: string): Promise<Table> {
  build(folder)
  // The order of starts matters by a few per cent, so each checkout starts first once.
  const subjects = []
  for (const label of ['this', 'other', 'other again', 'this again']) {
    const where = label.startsWith('other') ? { folder } : {}
    subjects.push({ label, subject: await startSubject('gateway', place, where) })
  }
  const rows = []
  for (const [label, path] of Object.entries({ signedIn, shaped, shaped20, open })) {
    const contestants = subjects.map(subject => ({ ...subject, path }))
    const of = await measure(place, contestants, pace)
    const microsOf = (whose: string) => {
      const again = of(`${whose} again`, 'cpuMicros')
      return of(whose, 'cpuMicros').map((micros, round) => (micros + (again[round] ?? NaN)) / 2)
    }
    const [here, there] = [microsOf('this'), microsOf('other')]
    rows.push({ label, cells: [here, there, ratios(here, there)].map(interval) })
  }
  await Promise.all(subjects.map(({ subject }) => subject.stop()))
  return {
    title: `This checkout beside ${folder}, by turns; in brackets the 95 % interval of the median`,
    columns: ['CPU µs', 'CPU µs there', 'ratio'],
    rows,
    bounds: []
  }
}
