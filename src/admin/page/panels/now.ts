/** The panel Now: live numbers of the gateway, its routes, upstreams, Redis and replicas. */
import { type ComponentChildren, h } from 'preact'
import { useState } from 'preact/hooks'
import type { NowFrame } from '../api-types.ts'
import { formatAgo, formatMs, formatNumber, formatShare } from '../format.ts'
import { t } from '../words.ts'
import { history, live } from '../live.ts'
import { useStore } from '../store.ts'
import { Chart } from '../ui/chart.ts'
import { Card, Panel, Search } from '../ui/layout.ts'
import { StatePill } from '../ui/pill.ts'
import { Empty } from '../ui/states.ts'
import { type Column, Table } from '../ui/table.ts'
import { ProcessCard, ReplicasCard, UpstreamsCard } from './now-parts.ts'

export function NowPanel(): ComponentChildren {
  const { frame } = useStore(live)
  const [route, setRoute] = useState<string | undefined>(undefined)
  if (frame === undefined) {
    return h(Panel, { title: t('now.title') }, h(Empty, null, t('now.waiting')))
  }
  return h(
    Panel,
    { title: t('now.title'), tools: h(RunningConfig, { frame }) },
    h(Figures, { frame }),
    h(Charts, { route, showAll: () => setRoute(undefined) }),
    h(
      'div',
      { class: 'columns' },
      h(RoutesCard, { frame, route, setRoute }),
      h(UpstreamsCard, { upstreams: frame.upstreams })
    ),
    h(
      'div',
      { class: 'columns' },
      h(RedisCard, { redis: frame.redis }),
      frame.process !== undefined && h(ProcessCard, { process: frame.process }),
      h(ReplicasCard, { replicas: frame.replicas ?? [], self: frame.replica })
    )
  )
}

function RunningConfig({ frame: { config } }: { readonly frame: NowFrame }): ComponentChildren {
  if (config === undefined) return null
  return h(
    'a',
    { class: 'config-link', href: '#/config' },
    t('now.generation', { n: String(config.generation) }),
    config.state !== undefined && h(StatePill, { state: config.state })
  )
}

function Figures({ frame }: { readonly frame: NowFrame }): ComponentChildren {
  const { requestsPerSecond, errorShare, inFlight, queued } = frame
  const figures: ReadonlyArray<readonly [string, string, string]> = [
    [t('now.rate'), formatNumber(requestsPerSecond), ''],
    [t('now.errorShare'), formatShare(errorShare), toneOfErrors(errorShare)],
    [t('now.inFlight'), formatNumber(inFlight), ''],
    [t('now.queued'), formatNumber(queued), queued > 0 ? 'warn' : '']
  ]
  return h(
    'dl',
    { class: 'figures' },
    figures.map(([label, value, tone]) =>
      h('div', { key: label, class: `figure ${tone}` }, h('dt', null, label), h('dd', null, value))
    )
  )
}

function toneOfErrors(share: number): string {
  if (share >= 0.05) return 'bad'
  return share >= 0.01 ? 'warn' : ''
}

interface ChartsProps {
  readonly route: string | undefined
  readonly showAll: () => void
}

function Charts({ route, showAll }: ChartsProps): ComponentChildren {
  const series = route === undefined ? history.all : history.routes.get(route)
  const { times, slots } = history
  const read = (measure: 0 | 1 | 2 | 3) => series?.read(measure, slots) ?? slots.map(() => null)
  const of = route === undefined ? t('now.allRoutes') : t('now.ofRoute', { route })
  return h(
    'section',
    { 'class': 'card charts', 'aria-label': of },
    h(
      'header',
      { class: 'card-head' },
      h('h2', null, of),
      route !== undefined &&
        h('button', { type: 'button', class: 'button small', onClick: showAll }, t('now.showAll'))
    ),
    h(
      'div',
      { class: 'chart-row' },
      h(Chart, {
        label: t('now.rate'),
        times,
        format: formatNumber,
        lines: [
          { label: t('now.all'), colour: 1, values: read(0) },
          { label: t('now.failed'), colour: 3, values: read(1) }
        ]
      }),
      h(Chart, {
        label: t('now.latency'),
        times,
        format: formatMs,
        lines: [
          { label: t('now.p50'), colour: 1, values: read(2) },
          { label: t('now.p99'), colour: 2, values: read(3) }
        ]
      })
    )
  )
}

interface RoutesProps {
  readonly frame: NowFrame
  readonly route: string | undefined
  readonly setRoute: (route: string) => void
}

type Row = NowFrame['routes'][number]

function RoutesCard({ frame, route: chosen, setRoute }: RoutesProps): ComponentChildren {
  const [filter, setFilter] = useState('')
  const rows = frame.routes.filter(({ route }) =>
    route.toLowerCase().includes(filter.trim().toLowerCase())
  )
  const columns: ReadonlyArray<Column<Row>> = [
    {
      key: 'route',
      head: t('now.route'),
      sortBy: ({ route }) => route,
      cell: ({ route }) =>
        h(
          'button',
          {
            'type': 'button',
            'class': 'link',
            'title': t('now.showRoute', { route }),
            'aria-pressed': route === chosen,
            'onClick': () => setRoute(route)
          },
          route
        )
    },
    numberColumn('rps', t('now.perSecond'), row => row.requestsPerSecond, formatNumber),
    {
      ...numberColumn('errors', t('now.errorsShort'), (row: Row) => row.errorShare, formatShare),
      cell: ({ errorShare }) =>
        h('span', { class: toneOfErrors(errorShare) }, formatShare(errorShare))
    },
    { ...numberColumn('p50', t('now.p50'), (row: Row) => row.p50Ms, formatMs), hide: 'phone' },
    numberColumn('p99', t('now.p99'), row => row.p99Ms, formatMs)
  ]
  return h(
    Card,
    {
      title: t('now.routes'),
      count: frame.routes.length,
      tools: h(Search, { label: t('now.filterRoutes'), value: filter, onInput: setFilter })
    },
    h(Table<Row>, {
      label: t('now.routes'),
      columns,
      rows,
      keyOf: ({ route }) => route,
      isMarked: ({ route }) => route === chosen,
      sort: { key: 'rps', isDescending: true },
      empty: t('now.noRoutes'),
      maxRows: 10
    })
  )
}

function numberColumn<T>(
  key: string,
  head: string,
  valueOf: (row: T) => number | null | undefined,
  format: (value: number | null | undefined) => string
): Column<T> {
  return {
    key,
    head,
    isNumber: true,
    width: '5.4rem',
    sortBy: row => valueOf(row) ?? -1,
    cell: row => format(valueOf(row))
  }
}

function RedisCard({ redis }: { readonly redis: NowFrame['redis'] }): ComponentChildren {
  if (redis === undefined || redis.state === 'embedded') {
    return h(Card, { title: t('now.redis') }, h(Empty, null, t('now.noRedis')))
  }
  return h(
    Card,
    { title: t('now.redis') },
    h(
      'dl',
      { class: 'facts' },
      h('dt', null, t('now.state')),
      h('dd', null, h(StatePill, { state: redis.state })),
      h('dt', null, t('now.redisLatency')),
      h('dd', null, formatMs(redis.latencyMs)),
      redis.since !== undefined && h('dt', null, t('now.since')),
      redis.since !== undefined && h('dd', null, formatAgo(redis.since))
    )
  )
}
