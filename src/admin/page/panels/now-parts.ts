/** Cards of the panel Now: upstreams, processes and replicas. */
import { type ComponentChildren, h } from 'preact'
import type { ProcessNow, ReplicaNow, UpstreamNow } from '../api-types.ts'
import { formatAgo, formatBytes, formatMs, formatNumber, formatShare } from '../format.ts'
import { t } from '../words.ts'
import { Card } from '../ui/layout.ts'
import { StatePill } from '../ui/pill.ts'
import { type Column, Table } from '../ui/table.ts'

interface UpstreamsProps {
  readonly upstreams: readonly UpstreamNow[]
}

export function UpstreamsCard({ upstreams }: UpstreamsProps): ComponentChildren {
  const columns: ReadonlyArray<Column<UpstreamNow>> = [
    {
      key: 'upstream',
      head: t('now.upstream'),
      width: '23%',
      sortBy: ({ upstream }) => upstream,
      cell: ({ upstream }) => upstream
    },
    {
      key: 'address',
      head: t('now.address'),
      sortBy: ({ address }) => address,
      cell: ({ address }) =>
        h('span', { class: 'mono', title: address }, address.replace(/^http:\/\//, ''))
    },
    {
      key: 'state',
      head: t('now.state'),
      width: '6.2rem',
      sortBy: ({ state }) => state,
      cell: ({ state }) => h(StatePill, { state })
    },
    {
      key: 'inFlight',
      head: t('now.inFlight'),
      isNumber: true,
      width: '4.6rem',
      hide: 'phone',
      sortBy: ({ inFlight }) => inFlight,
      cell: ({ inFlight, queued = 0 }) =>
        queued > 0 ? `${formatNumber(inFlight)} + ${formatNumber(queued)}` : formatNumber(inFlight)
    },
    {
      key: 'errors',
      head: t('now.errorsShort'),
      isNumber: true,
      width: '4.9rem',
      hide: 'phone',
      sortBy: ({ errorShare }) => errorShare ?? -1,
      cell: ({ errorShare }) => formatShare(errorShare)
    }
  ]
  return h(
    Card,
    { title: t('now.upstreams'), count: upstreams.length },
    h(Table<UpstreamNow>, {
      label: t('now.upstreams'),
      columns,
      rows: upstreams,
      keyOf: ({ upstream, address }) => `${upstream} ${address}`,
      empty: t('now.noUpstreams'),
      maxRows: 10
    })
  )
}

interface ProcessProps {
  readonly process: ProcessNow
}

export function ProcessCard({ process }: ProcessProps): ComponentChildren {
  const columns: ReadonlyArray<Column<ProcessNow>> = [
    {
      key: 'process',
      head: t('now.pid'),
      cell: ({ pid }) => pid
    },
    {
      key: 'loop',
      head: t('now.loopDelay'),
      isNumber: true,
      width: '8.6rem',
      cell: ({ eventLoopDelayMs }) => formatMs(eventLoopDelayMs)
    },
    {
      key: 'memory',
      head: t('now.memory'),
      isNumber: true,
      width: '6rem',
      hide: 'phone',
      cell: ({ rssBytes }) => formatBytes(rssBytes)
    },
    {
      key: 'cpu',
      head: t('now.cpu'),
      isNumber: true,
      width: '4.5rem',
      cell: ({ cpu }) => formatShare(cpu)
    }
  ]
  return h(
    Card,
    { title: t('now.process') },
    h(Table<ProcessNow>, {
      label: t('now.process'),
      columns,
      rows: [process],
      keyOf: ({ pid }) => String(pid)
    })
  )
}

interface ReplicasProps {
  readonly replicas: readonly ReplicaNow[]
  readonly self: string | undefined
}

export function ReplicasCard({ replicas, self }: ReplicasProps): ComponentChildren {
  const columns: ReadonlyArray<Column<ReplicaNow>> = [
    {
      key: 'replica',
      head: t('now.replica'),
      cell: ({ id, host = '' }) => [
        h('span', { title: host }, id),
        id === self && h('span', { class: 'muted' }, ` (${t('now.thisReplica')})`)
      ]
    },
    {
      key: 'ready',
      head: t('now.state'),
      width: '6.2rem',
      cell: ({ ready = true }) => h(StatePill, { state: ready ? 'ready' : 'not ready' })
    },
    {
      key: 'version',
      head: t('now.version'),
      width: '4.4rem',
      hide: 'phone',
      cell: ({ version = '–' }) => version
    },
    {
      key: 'config',
      head: t('now.config'),
      width: '6.5rem',
      cell: ({ configHash = '–' }) =>
        h('span', { class: 'mono', title: configHash }, configHash.slice(0, 8))
    },
    {
      key: 'seen',
      head: t('now.seen'),
      width: '6.4rem',
      hide: 'phone',
      cell: ({ seenAt }) => formatAgo(seenAt)
    }
  ]
  return h(
    Card,
    { title: t('now.replicas'), count: replicas.length },
    h(Table<ReplicaNow>, {
      label: t('now.replicas'),
      columns,
      rows: replicas,
      keyOf: ({ id }) => id
    })
  )
}
