/**
 * The ladder: from a bare Fastify handler up to the whole signed-in request. Each step is the
 * gateway's own build with one more part of the config, by turns with the step below it.
 */
import { isDeepStrictEqual } from 'node:util'
import type { Outcome, Stage } from './cases.ts'
import { allFeatures, type Features } from './gateway.ts'
import { noticesOf, sizes } from './notices.ts'
import { type Contestant, interval, measure } from './rounds.ts'
import { startSubject, type Subject, type SubjectName } from './subjects.ts'

interface Step {
  readonly label: string
  readonly subject: SubjectName
  readonly path: string
  readonly features?: Features
}

const path = '/api/notices/small'
const shapedPath = '/api/shaped/small'

/** In the order in which a request meets them. */
const additions: ReadonlyArray<readonly [feature: keyof Features, label: string]> = [
  ['trustedProxy', '+ address and scheme from the load balancer'],
  ['accessLog', '+ access log'],
  ['limits', '+ limits through Redis'],
  ['sessions', '+ session and guard'],
  ['identity', '+ identity headers'],
  ['credential', '+ credential: the signed-in request']
]

const nothing = Object.fromEntries(additions.map(([feature]) => [feature, false]))

function steps(): Step[] {
  let features = { ...allFeatures, ...nothing }
  return [
    {
      label: 'bare Fastify handler with undici',
      subject: 'by-hand',
      path: '/api/public/notices/small'
    },
    { label: 'gateway, barest: public route', subject: 'gateway', path, features },
    ...additions.map(([feature, label]): Step => {
      features = { ...features, [feature]: true }
      return { label, subject: 'gateway', path, features }
    }),
    { label: '+ shape and envelope', subject: 'gateway', path: shapedPath, features }
  ]
}

type LadderStage = Pick<Stage, 'place' | 'warmUp' | 'pairRounds' | 'pairMs'>

export async function ladder(stage: LadderStage): Promise<Outcome> {
  const { place, warmUp, pairRounds, pairMs } = stage
  const contestants: Contestant[] = []
  for (const { label, subject: name, path: asked, features } of steps()) {
    const subject = await startSubject(name, place, { gateway: { ...(features && { features }) } })
    contestants.push({ label, subject, path: asked })
    await expectNotices(subject, asked)
  }
  const plugin = await startSubject('plugin', place)
  const beside = { label: 'beside: bare @fastify/http-proxy', subject: plugin, path }
  const samples = await measure(place, [...contestants, beside], {
    rounds: pairRounds,
    connections: 64,
    warmMs: 100,
    ms: pairMs,
    warmUp
  })
  await Promise.all([...contestants, beside].map(({ subject }) => subject.stop()))
  const microsOf = ({ label }: Contestant) =>
    (samples.get(label) ?? []).map(({ cpuMicros }) => cpuMicros)
  const [first = []] = contestants.map(microsOf)
  const rowOf = (contestant: Contestant, below: Contestant | undefined) => {
    const micros = microsOf(contestant)
    const before = below && microsOf(below)
    return {
      label: contestant.label,
      cells: [
        interval(micros),
        before && interval(micros.map((value, round) => value - (before[round] ?? NaN))),
        interval(micros.map((value, round) => value / (first[round] ?? NaN)))
      ]
    }
  }
  return {
    title: `The ladder: GET, 0.7 KB, ${pairRounds} rounds by turns; in brackets the 95 % interval of the median`,
    columns: ['CPU µs', 'added µs', 'ratio to the first'],
    rows: [
      ...contestants.map((contestant, index) => rowOf(contestant, contestants[index - 1])),
      rowOf(beside, undefined)
    ],
    verdicts: []
  }
}

interface Growth {
  readonly label: string
  /** What the step adds, as a part of the first step's cost. */
  readonly before: number
  readonly now: number
}

/** The step that became dearer by the most since another run of the ladder. */
export function mostGrown(before: Outcome['rows'], now: Outcome['rows']): Growth | undefined {
  const addedBefore = new Map(addedParts(before).map(({ label, part }) => [label, part]))
  const growths = addedParts(now).flatMap(({ label, part }): Growth[] => {
    const former = addedBefore.get(label)
    return former === undefined ? [] : [{ label, before: former, now: part }]
  })
  return growths.toSorted((a, b) => b.now - b.before - (a.now - a.before))[0]
}

function addedParts(rows: Outcome['rows']): Array<{ label: string; part: number }> {
  const first = rows[0]?.cells[0]?.median ?? NaN
  return rows.flatMap(({ label, cells: [, added] }) =>
    added === undefined || added === null ? [] : [{ label, part: added.median / first }]
  )
}

/** Each step has to give what the upstream gives, or a shape of it. @throws where it does not */
async function expectNotices(subject: Subject, asked: string): Promise<void> {
  const [request] = subject.requests(asked, 1)
  const response = await fetch(subject.origin + asked, { headers: { ...request?.headers } })
  const body = (await response.json()) as { readonly data?: readonly unknown[] }
  const notices = noticesOf(sizes.small)
  const isExpected =
    asked === shapedPath
      ? body.data?.length === notices.data.count
      : isDeepStrictEqual(body, notices)
  if (response.status !== 200 || !isExpected) {
    throw new Error(`${asked} of ${subject.name}: ${response.status} ${JSON.stringify(body)}`)
  }
}
