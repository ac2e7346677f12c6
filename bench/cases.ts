/** The cases: what is asked of whom, and which figures have a goal. */
import { setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { residentMegabytes } from './accounting.ts'
import { bounds } from './bounds.ts'
import { ladder } from './ladder.ts'
import type { Size } from './notices.ts'
import { overload } from './overload.ts'
import { pieces } from './pieces.ts'
import type { Place } from './place.ts'
import {
  type Contestant,
  type Figure,
  figure,
  longestWarmUpMs,
  measure,
  type Pace,
  paired,
  type Sample
} from './rounds.ts'
import { memoryOfReloads } from './reloads.ts'
import { webSocket } from './websocket.ts'
import { isThere, startSubject, type Subject, type SubjectName, titles } from './subjects.ts'

export interface Verdict {
  readonly what: string
  readonly value: Figure
  readonly unit: '' | '×' | 'ms' | 'MB' | '%'
  /** More is better only where it is said. */
  readonly goal: number
  readonly must: number
  readonly moreIsBetter?: true
}

export interface Outcome {
  readonly title: string
  readonly columns: readonly string[]
  readonly rows: ReadonlyArray<{
    readonly label: string
    readonly cells: ReadonlyArray<Figure | undefined>
  }>
  readonly verdicts: readonly Verdict[]
}

export interface Stage {
  readonly place: Place
  /** Started at the first use and kept: whoever runs is warm. */
  readonly subject: (name: SubjectName) => Promise<Subject>
  readonly rounds: number
  /** The length of one turn of a round. */
  readonly ms: number
  readonly warmUp: number
  /** For what differs by a few per cent: more rounds of shorter turns. */
  readonly pairRounds: number
  readonly pairMs: number
  /** The length of the load before memory is read. */
  readonly minutes: number
}

const perRequest = [
  'CPU µs',
  'ratio to bare plugin',
  'requests/s',
  'p50 ms',
  'p99 ms',
  'RSS MB',
  'Redis commands'
]
const pace = ({ rounds, ms, warmUp }: Stage): Pace => ({
  rounds,
  ms,
  warmUp,
  connections: 64,
  warmMs: 200
})
const valuesOf = (samples: Map<string, Sample[]>, label: string, what: keyof Sample) =>
  (samples.get(label) ?? []).map(sample => sample[what])
const over = (a: number, b: number) => a / b
const cpuRatio = (samples: Map<string, Sample[]>, label: string, base: string) =>
  paired(valuesOf(samples, label, 'cpuMicros'), valuesOf(samples, base, 'cpuMicros'), over)

async function against(
  stage: Stage,
  title: string,
  names: readonly SubjectName[],
  path: string,
  gatewayPath = path
): Promise<Outcome & { samples: Map<string, Sample[]> }> {
  const contestants: Contestant[] = []
  for (const name of names.filter(isThere)) {
    contestants.push({
      label: titles[name],
      subject: await stage.subject(name),
      path: name === 'gateway' ? gatewayPath : path
    })
  }
  const samples = await measure(stage.place, contestants, pace(stage))
  const rows = contestants.map(({ label }) => {
    const all = (what: keyof Sample) => figure(valuesOf(samples, label, what))
    return {
      label,
      cells: [
        all('cpuMicros'),
        cpuRatio(samples, label, titles.plugin),
        all('perSecond'),
        all('p50Ms'),
        all('p99Ms'),
        all('megabytes'),
        all('redisCalls')
      ]
    }
  })
  return { title, columns: perRequest, rows, verdicts: [], samples }
}

async function signedIn(stage: Stage): Promise<Outcome> {
  const { samples, ...outcome } = await against(
    stage,
    'Signed-in GET, 0.7 KB: session, user limit through Redis, identity fields, access log',
    ['gateway', 'plugin', 'sum', 'express', 'nginx', 'haproxy'],
    '/api/notices/small'
  )
  return {
    ...outcome,
    verdicts: [
      {
        what: 'signed-in GET, CPU per request',
        value: cpuRatio(samples, titles.gateway, titles.plugin),
        unit: '×',
        ...bounds.signedIn
      },
      {
        what: 'requests per CPU second against the Express stack',
        value: cpuRatio(samples, titles.express, titles.gateway),
        unit: '×',
        ...bounds.express,
        moreIsBetter: true
      }
    ]
  }
}

async function shaped(stage: Stage): Promise<Outcome> {
  const { samples, ...outcome } = await against(
    stage,
    'The same, shaped and enveloped',
    ['gateway', 'plugin'],
    '/api/notices/small',
    '/api/shaped/small'
  )
  return {
    ...outcome,
    verdicts: [
      {
        what: 'the same, shaped and enveloped',
        value: cpuRatio(samples, titles.gateway, titles.plugin),
        unit: '×',
        ...bounds.shaped
      }
    ]
  }
}

async function openToAll(stage: Stage): Promise<Outcome> {
  const { samples, ...outcome } = await against(
    stage,
    'Public GET, 0.7 KB: address limit through Redis',
    ['gateway', 'plugin', 'nginx', 'haproxy'],
    '/api/public/notices/small'
  )
  return {
    ...outcome,
    verdicts: [
      {
        what: 'public GET, address limit',
        value: cpuRatio(samples, titles.gateway, titles.plugin),
        unit: '×',
        ...bounds.public
      }
    ]
  }
}

async function latency(stage: Stage): Promise<Outcome> {
  const names: SubjectName[] = ['direct', 'gateway', 'plugin', 'sum', 'express']
  const contestants: Contestant[] = []
  for (const name of names) {
    contestants.push({
      label: titles[name],
      subject: await stage.subject(name),
      path: '/api/notices/small'
    })
  }
  const samples = await measure(stage.place, contestants, {
    ...pace(stage),
    ms: stage.ms * 1.5,
    rate: 500,
    warmUp: stage.warmUp / 4
  })
  const direct = valuesOf(samples, titles.direct, 'p50Ms')
  const addedOf = (label: string) => difference(valuesOf(samples, label, 'p50Ms'), direct)
  return {
    title: 'Latency at 500 requests/s, signed in, 0.7 KB',
    columns: ['p50 ms', 'added p50 ms', 'p99 ms', 'requests/s', 'CPU µs'],
    rows: contestants.map(({ label, subject }) => ({
      label,
      cells: [
        figure(valuesOf(samples, label, 'p50Ms')),
        figure(addedOf(label)),
        figure(valuesOf(samples, label, 'p99Ms')),
        figure(valuesOf(samples, label, 'perSecond')),
        subject.name === 'direct' ? undefined : figure(valuesOf(samples, label, 'cpuMicros'))
      ]
    })),
    verdicts: [
      {
        what: 'p50 added at 500 requests/s, over what the plugin adds',
        value: paired(addedOf(titles.gateway), addedOf(titles.plugin), over),
        unit: '×',
        ...bounds.addedLatency
      }
    ]
  }
}

async function transfer(stage: Stage): Promise<Outcome> {
  const bytes = 100 * 1024 * 1024
  const contestants: Contestant[] = []
  for (const name of ['gateway', 'plugin'] as const) {
    const subject = await stage.subject(name)
    contestants.push({ label: `${titles[name]}, download`, subject, path: `/api/files/${bytes}` })
    contestants.push({
      label: `${titles[name]}, upload`,
      subject,
      path: '/api/files/sink',
      rest: {
        method: 'POST',
        sends: bytes,
        headers: { 'content-type': 'application/octet-stream', 'content-length': String(bytes) }
      }
    })
  }
  const samples = await measure(stage.place, contestants, {
    rounds: stage.rounds,
    connections: 1,
    warmMs: 0,
    ms: 60_000,
    count: 2,
    warmUp: 2
  })
  const ratio = (way: string) =>
    cpuRatio(samples, `${titles.gateway}, ${way}`, `${titles.plugin}, ${way}`)
  return {
    title: '100 MB through',
    columns: ['CPU ms', 'ratio to bare plugin', 'seconds', 'RSS MB'],
    rows: contestants.map(({ label, subject }) => ({
      label,
      cells: [
        figure(valuesOf(samples, label, 'cpuMicros').map(micros => micros / 1000)),
        subject.name === 'gateway'
          ? ratio(label.endsWith('download') ? 'download' : 'upload')
          : undefined,
        figure(valuesOf(samples, label, 'perSecond').map(perSecond => 1 / perSecond)),
        figure(valuesOf(samples, label, 'megabytes'))
      ]
    })),
    verdicts: ['download', 'upload'].map(way => ({
      what: `100 MB ${way}, CPU`,
      value: ratio(way),
      unit: '×' as const,
      ...bounds.transfer
    }))
  }
}

async function start(stage: Stage): Promise<Outcome> {
  const names: SubjectName[] = ['gateway', 'plugin', 'sum', 'express']
  const times = new Map<SubjectName, number[]>(names.map(name => [name, []]))
  for (let round = 0; round < stage.rounds; round++) {
    for (const name of names) {
      const subject = await startSubject(name, stage.place)
      times.get(name)?.push(subject.startMs)
      await subject.stop()
    }
  }
  return {
    title: 'Start to ready',
    columns: ['ms'],
    rows: names.map(name => ({ label: titles[name], cells: [figure(times.get(name) ?? [])] })),
    verdicts: [
      {
        what: 'start to ready, over the plugin’s',
        value: paired(times.get('gateway') ?? [], times.get('plugin') ?? [], over),
        unit: '×',
        ...bounds.start
      }
    ]
  }
}

async function memory(stage: Stage): Promise<Outcome> {
  const measured = new Map<SubjectName, number[]>()
  const names = ['gateway', 'plugin'] as const
  for (const name of names) {
    const subject = await startSubject(name, stage.place, { restMs: 2000 })
    const load = (ms: number) =>
      stage.place.load({
        origin: subject.origin,
        pid: subject.pid,
        requests: subject.requests('/api/notices/small', 64),
        warmMs: 0,
        ms
      })
    await load(Math.min(longestWarmUpMs, stage.minutes * 15_000))
    const early = residentMegabytes(subject.pid)
    await load(stage.minutes * 60_000)
    const late = residentMegabytes(subject.pid)
    await wait(3000)
    measured.set(name, [subject.restMegabytes, early, late, residentMegabytes(subject.pid)])
    await subject.stop()
  }
  const read = (name: SubjectName, index: number) => figure([measured.get(name)?.[index] ?? NaN])
  return {
    title: `Resident memory, ${stage.minutes} minutes of load`,
    columns: ['at rest, MB', 'load has begun, MB', 'at its end, MB', 'at rest again, MB'],
    rows: names.map(name => ({
      label: titles[name],
      cells: [0, 1, 2, 3].map(index => read(name, index))
    })),
    verdicts: [
      { what: 'RSS at rest', value: read('gateway', 0), unit: 'MB', ...bounds.residentAtRest },
      {
        what: `RSS after ${stage.minutes} minutes of load, more than at rest`,
        value: figure([(read('gateway', 2).median / read('gateway', 0).median - 1) * 100]),
        unit: '%',
        ...bounds.residentGrowth
      }
    ]
  }
}

async function shaping(stage: Stage): Promise<Outcome> {
  const gateway = await stage.subject('gateway')
  const byHand = await stage.subject('by-hand')
  await sameAnswer(gateway, byHand)
  const rows: Array<Outcome['rows'][number]> = []
  const verdicts: Verdict[] = []
  for (const [size, name, connections] of [
    ['small', '0.7 KB', 64],
    ['medium', '20 KB', 64],
    ['large', '500 KB', 8]
  ] as ReadonlyArray<[Size, string, number]>) {
    const contestants: Contestant[] = [
      { label: `${name}, unshaped`, subject: gateway, path: `/api/public/notices/${size}` },
      { label: `${name}, shaped`, subject: gateway, path: `/api/public/shaped/${size}` },
      { label: `${name}, unshaped, by hand`, subject: byHand, path: `/api/public/notices/${size}` },
      { label: `${name}, shaped by hand`, subject: byHand, path: `/api/public/shaped/${size}` }
    ]
    const samples = await measure(stage.place, contestants, {
      ...pace(stage),
      connections,
      warmUp: size === 'large' ? 300 : stage.warmUp / 2
    })
    const [plain, own, plainByHand, hand] = contestants.map(({ label }) =>
      valuesOf(samples, label, 'cpuMicros')
    ) as [number[], number[], number[], number[]]
    // What the gateway's request would cost with the handler's shaping in the place of its own.
    const ownShaping = difference(own, plain)
    const handShaping = difference(hand, plainByHand)
    const ratio = paired(
      own,
      plain.map((micros, index) => micros + (handShaping[index] ?? NaN)),
      over
    )
    const more: ReadonlyArray<ReadonlyArray<Figure | undefined>> = [
      [undefined, undefined],
      [figure(ownShaping), ratio],
      [undefined, undefined],
      [figure(handShaping), undefined]
    ]
    rows.push(
      ...contestants.map(({ label }, index) => ({
        label,
        cells: [
          figure(valuesOf(samples, label, 'cpuMicros')),
          ...(more[index] ?? []),
          figure(valuesOf(samples, label, 'perSecond'))
        ]
      }))
    )
    verdicts.push({
      what: `${name} shaped, CPU against the same shaping by hand`,
      value: ratio,
      unit: '×',
      ...bounds.shapingByHand
    })
  }
  return {
    title:
      'Shaped, unshaped, and shaped by hand in a handler that does nothing else (public route, address limit)',
    columns: [
      'CPU µs',
      'of that for shaping, µs',
      'ratio to the gateway with shaping by hand',
      'requests/s'
    ],
    rows,
    verdicts
  }
}

const difference = (a: readonly number[], b: readonly number[]) =>
  a.map((value, index) => value - (b[index] ?? NaN))

/** Subjects with different responses cannot be compared. */
async function sameAnswer(gateway: Subject, byHand: Subject): Promise<void> {
  const [a, b] = await Promise.all(
    [gateway, byHand].map(async ({ origin, requests }) => {
      const [request] = requests('/api/public/shaped/medium', 1)
      return (await (
        await fetch(`${origin}${request?.path}`, {
          headers: request?.headers as Record<string, string>
        })
      ).json()) as Record<string, unknown>
    })
  )
  if (!isDeepStrictEqual(a, b)) {
    throw new Error(
      `the shape and the handler by hand differ: ${JSON.stringify(a).slice(0, 300)} and ${JSON.stringify(b).slice(0, 300)}`
    )
  }
}

type Case = (stage: Stage) => Promise<Outcome>

/** Measured without being asked for. */
export const cases: Readonly<Record<string, Case>> = {
  'signed-in': signedIn,
  shaped,
  'public': openToAll,
  latency,
  transfer,
  start,
  memory,
  shaping
}

/** Only when asked for. */
export const furtherCases: Readonly<Record<string, Case>> = {
  ladder,
  overload,
  pieces,
  reloads: memoryOfReloads,
  websocket: webSocket
}
