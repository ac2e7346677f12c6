import type { Now, Past } from '../../services/present.ts'
import type { ReplicasStatus } from '../state-schemas.ts'
import { duration, number, percent } from './format.ts'
import { html, type Html } from '../../app/hooks/html.ts'
import { card, type Column, linkTo, pill, table, type Tone } from './parts.ts'

type Replica = ReplicasStatus['replicas'][number]

const maxRoutes = 50
const width = 300
const height = 60

const figures = [
  { label: 'Requests per second', name: 'requestsPerSecond', show: number },
  { label: 'Failed (5xx)', name: 'errorShare', show: percent },
  { label: 'Refused (4xx)', name: 'refusedShare', show: percent },
  { label: 'p99', name: 'p99Ms', show: duration }
] as const

/** A share from which it is a sign of trouble. */
const troubles: Readonly<Record<string, readonly [share: number, tone: Tone]>> = {
  errorShare: [0, 'bad'],
  refusedShare: [0.1, 'warn']
}

const routeColumns: ReadonlyArray<Column<Now['routes'][number]>> = [
  ['Route', 'wide', ({ route }) => linkTo('requests', { route, status: '' }, route)],
  ['Req/s', 'number', row => number(row.requestsPerSecond)],
  ['Failed', 'number', row => shareOf(row, 'errorShare')],
  ['Refused', 'number', row => shareOf(row, 'refusedShare')],
  ['p50', 'number extra', row => duration(row.p50Ms)],
  ['p99', 'number', row => duration(row.p99Ms)]
]

const upstreamColumns: ReadonlyArray<Column<Now['upstreams'][number]>> = [
  ['Upstream', 'wide', row => html`${row.upstream} <small class="mono">${row.address}</small>`],
  ['State', '', ({ state }) => pill(state === 'up' ? 'ok' : 'bad', state)],
  ['Req/s', 'number extra', row => number(row.requestsPerSecond)],
  ['In flight', 'number extra', ({ inFlight }) => number(inFlight)],
  ['Waiting', 'number extra', ({ queued }) => number(queued)],
  ['Failed', 'number', row => shareOf(row, 'errorShare')]
]

const replicaColumns: ReadonlyArray<Column<Replica>> = [
  ['Replica', 'wide', ({ id, host }) => html`${id} <small>${host}</small>`],
  ['State', '', replicaState],
  ['Config', 'extra', ({ configHash }) => html`<code>${configHash}</code>`],
  ['Req/s', 'number', row => number(row.requestsPerSecond)],
  ['Failed', 'number', row => shareOf(row, 'errorShare')],
  ['p99', 'number extra', row => duration(row.p99Ms)]
]

export function overview(now: Now, past: readonly Past[], { replicas }: ReplicasStatus): Html {
  const { routes, upstreams, inFlight, queued } = now
  const traffic = html`<small>${inFlight} in flight, ${queued} waiting</small>`
  return html`
    <div class="columns figures">${figures.map(each => figure(each, past))}</div>
    <div class="columns">
      ${card(
        { title: 'Routes', count: routes.length },
        table(routes.slice(0, maxRoutes), routeColumns, 'No requests in the last seconds.')
      )}
      ${card(
        { title: 'Upstreams', count: upstreams.length },
        table(upstreams, upstreamColumns, 'The config has no upstreams.')
      )}
    </div>
    ${card(
      { title: 'Replicas', count: replicas.length, tools: [traffic, redisOf(now)] },
      table(replicas, replicaColumns, '')
    )}
  `
}

/** The gateway keeps the numbers, so a new page has them too. */
function figure({ label, name, show }: (typeof figures)[number], past: readonly Past[]): Html {
  const values = past.map(each => each[name] ?? 0)
  const minutes = Math.ceil(values.length / 60)
  const tone = toneOf(name, values.at(-1))
  const top = Math.max(...values) || 1
  const start = width - values.length
  const points = values.map((value, index) => {
    return `${start + index},${(height - (value / top) * (height - 4)).toFixed(1)}`
  })
  const line = points.join(' ')
  return html`<div class="card figure">
    <span>${label} <small>up to ${show(Math.max(0, ...values))}</small></span>
    <b class="${tone}">${show(past.at(-1)?.[name])}</b>
    <svg
      class="spark ${tone ?? 'accent'}"
      viewBox="0 0 ${width} ${height}"
      preserveAspectRatio="none"
      role="img"
      aria-label="${label} in the last ${minutes} minutes"
      fill="currentColor"
    >
      <polygon points="${start},${height} ${line} ${width},${height}" opacity="0.1" />
      <polyline
        points="${line}"
        fill="none"
        stroke="currentColor"
        stroke-width="1.5"
        vector-effect="non-scaling-stroke"
      />
    </svg>
  </div>`
}

function shareOf<N extends string>(row: Readonly<Record<N, number>>, name: N): Html {
  return html`<span class="${toneOf(name, row[name])}">${percent(row[name])}</span>`
}

function toneOf(name: string, value = 0): Tone | undefined {
  const [share, tone] = troubles[name] ?? [Infinity]
  return value > share ? tone : undefined
}

function replicaState({ ready, isSilent }: Replica): Html {
  if (isSilent) return pill('bad', 'silent')
  return ready ? pill('ok', 'ready') : pill('bad', 'not ready')
}

function redisOf({ redis }: Now): Html {
  if (redis === undefined) return pill('plain', 'no Redis: one process')
  return redis.up ? pill('ok', `Redis: ${duration(redis.latencyMs)}`) : pill('bad', 'Redis: down')
}
