import type { Now, Past } from '../../services/present.ts'
import type { ReplicasStatus } from '../state-schemas.ts'
import { duration, number, percent } from './format.ts'
import { html, type Html } from '../../app/hooks/html.ts'
import { card, type Column, linkTo, pill, say, table, type Tone } from './parts.ts'
import texts from './texts.json' with { type: 'json' }

const { heads, overview: words } = texts

type Replica = ReplicasStatus['replicas'][number]

const maxRoutes = 50
const width = 300
const height = 60

const figures = [
  ['requestsPerSecond', number],
  ['errorShare', percent],
  ['refusedShare', percent],
  ['p99Ms', duration]
] as const

/** A share from which it is a sign of trouble. */
const troubles: Readonly<Record<string, readonly [share: number, tone: Tone]>> = {
  errorShare: [0, 'bad'],
  refusedShare: [0.1, 'warn']
}

const routeColumns: ReadonlyArray<Column<Now['routes'][number]>> = [
  [heads.route, 'wide', ({ route }) => linkTo('requests', { route, status: '' }, route)],
  [heads.perSecond, 'number', row => number(row.requestsPerSecond)],
  [heads.failed, 'number', row => shareOf(row, 'errorShare')],
  [heads.refused, 'number', row => shareOf(row, 'refusedShare')],
  ['p50', 'number extra', row => duration(row.p50Ms)],
  ['p99', 'number', row => duration(row.p99Ms)]
]

const upstreamColumns: ReadonlyArray<Column<Now['upstreams'][number]>> = [
  [heads.upstream, 'wide', row => html`${row.upstream} <small class="mono">${row.address}</small>`],
  [heads.state, '', ({ state }) => pill(state === 'up' ? 'ok' : 'bad', state)],
  [heads.perSecond, 'number extra', row => number(row.requestsPerSecond)],
  [heads.inFlight, 'number extra', ({ inFlight }) => number(inFlight)],
  [heads.waiting, 'number extra', ({ queued }) => number(queued)],
  [heads.failed, 'number', row => shareOf(row, 'errorShare')]
]

const replicaColumns: ReadonlyArray<Column<Replica>> = [
  [heads.replica, 'wide', ({ id, host }) => html`${id} <small>${host}</small>`],
  [heads.state, '', replicaState],
  [heads.config, 'extra', ({ configHash }) => html`<code>${configHash}</code>`],
  [heads.perSecond, 'number', row => number(row.requestsPerSecond)],
  [heads.failed, 'number', row => shareOf(row, 'errorShare')],
  ['p99', 'number extra', row => duration(row.p99Ms)]
]

export function overview(now: Now, past: readonly Past[], { replicas }: ReplicasStatus): Html {
  const { routes, upstreams, inFlight, queued } = now
  const traffic = html`<small>${say(words.traffic, { inFlight, queued })}</small>`
  return html`
    <div class="columns figures">${figures.map(each => figure(each, past))}</div>
    <div class="columns">
      ${card(
        { title: words.routes, count: routes.length },
        table(routes.slice(0, maxRoutes), routeColumns, words.noRoutes)
      )}
      ${card(
        { title: words.upstreams, count: upstreams.length },
        table(upstreams, upstreamColumns, words.noUpstreams)
      )}
    </div>
    ${card(
      { title: words.replicas, count: replicas.length, tools: [traffic, redisOf(now)] },
      table(replicas, replicaColumns, '')
    )}
  `
}

/** The gateway keeps the numbers, so a new page has them too. */
function figure([name, show]: (typeof figures)[number], past: readonly Past[]): Html {
  const values = past.map(each => each[name] ?? 0)
  const minutes = Math.ceil(values.length / 60)
  const tone = toneOf(name, values.at(-1))
  const top = Math.max(...values) || 1
  const highest = show(Math.max(0, ...values))
  const start = width - values.length
  const points = values.map((value, index) => {
    return `${start + index},${(height - (value / top) * (height - 4)).toFixed(1)}`
  })
  const line = points.join(' ')
  return html`<div class="card figure">
    <span>${words[name]} <small>${say(words.upTo, { value: highest })}</small></span>
    <b class="${tone}">${show(past.at(-1)?.[name])}</b>
    <svg
      class="spark ${tone ?? 'accent'}"
      viewBox="0 0 ${width} ${height}"
      preserveAspectRatio="none"
      role="img"
      aria-label="${say(words.minutes, { figure: words[name], minutes })}"
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
  if (isSilent) return pill('bad', words.silent)
  return ready ? pill('ok', words.ready) : pill('bad', words.notReady)
}

function redisOf({ redis }: Now): Html {
  if (redis === undefined) return pill('plain', words.noRedis)
  if (!redis.up) return pill('bad', words.redisDown)
  return pill('ok', say(words.redis, { latency: duration(redis.latencyMs) }))
}
