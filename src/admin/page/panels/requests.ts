/** The panel Requests: failed, slow and changing ones; the timeline of the chosen one beside them. */
import { type ComponentChildren, h } from 'preact'
import { useRef, useState } from 'preact/hooks'
import { useJson } from '../api.ts'
import type { RequestRow, RequestsAnswer } from '../api-types.ts'
import { formatMs, formatTime } from '../format.ts'
import { t } from '../words.ts'
import { Card, Panel, Search, Select } from '../ui/layout.ts'
import { Shown } from '../ui/states.ts'
import { type Column, Table } from '../ui/table.ts'
import { useSettled } from '../ui/settled.ts'
import { StatusPill } from './status-pill.ts'
import { Timeline } from './timeline.ts'

const everyMs = 2000
const maxRequests = 500
const statuses = ['', 'failed', '2xx', '3xx', '4xx', '401', '403', '404', '429', '5xx'] as const

interface Filter {
  readonly status: string
  readonly route: string
  readonly user: string
  readonly id: string
}

/** An id names its requests alone: it needs no other filter. */
function pathOf({ status, route, user, id }: Filter): string {
  if (id !== '') return `requests/${encodeURIComponent(id)}`
  const query = new URLSearchParams({ last: String(maxRequests) })
  if (status !== '') query.set('status', status)
  if (route !== '') query.set('route', route)
  if (user !== '') query.set('user', user)
  return `requests?${query.toString()}`
}

export function RequestsPanel(): ComponentChildren {
  const [filter, setFilter] = useState<Filter>({ status: '', route: '', user: '', id: '' })
  const [isFollowing, setFollowing] = useState(true)
  const [chosen, setChosen] = useState<RequestRow | undefined>(undefined)
  const asked = useJson<RequestsAnswer>(
    pathOf(useSettled(filter)),
    isFollowing ? everyMs : undefined
  )
  const opener = useRef<HTMLElement>(undefined)
  const choose = (row: RequestRow, from: HTMLElement) => {
    opener.current = from
    setChosen(row)
  }
  const close = () => {
    setChosen(undefined)
    opener.current?.focus()
  }
  return h(
    Panel,
    { title: t('requests.title'), tools: h(Filters, { filter, setFilter }) },
    h(
      'div',
      { class: chosen === undefined ? 'split' : 'split open' },
      h(
        Card,
        {
          title: t('requests.last'),
          count: asked.data?.requests.length,
          tools: h(
            'label',
            { class: 'check' },
            h('input', {
              type: 'checkbox',
              checked: isFollowing,
              onChange: () => setFollowing(!isFollowing)
            }),
            t('requests.follow')
          )
        },
        h(Shown<RequestsAnswer>, {
          asked,
          show: ({ requests, problem }) => [
            problem !== undefined && h('p', { class: 'note' }, problem),
            h(Table<RequestRow>, {
              label: t('requests.last'),
              columns: columnsOf(choose),
              rows: requests,
              keyOf: ({ requestId, at, path }) => `${requestId} ${at} ${path}`,
              isMarked: ({ requestId, at }) => requestId === chosen?.requestId && at === chosen.at,
              empty: t('requests.none'),
              maxRows: 22
            })
          ]
        })
      ),
      chosen !== undefined && h(Timeline, { key: chosen.requestId + chosen.at, row: chosen, close })
    )
  )
}

interface FiltersProps {
  readonly filter: Filter
  readonly setFilter: (filter: Filter) => void
}

function Filters({ filter, setFilter }: FiltersProps): ComponentChildren {
  return [
    h(Select, {
      key: 'status',
      label: t('requests.status'),
      value: filter.status,
      options: statuses.map(
        status => [status, status === '' ? t('requests.anyStatus') : statusText(status)] as const
      ),
      onChange: status => setFilter({ ...filter, status })
    }),
    h(Search, {
      key: 'route',
      label: t('requests.route'),
      value: filter.route,
      onInput: route => setFilter({ ...filter, route: route.trim() })
    }),
    h(Search, {
      key: 'user',
      label: t('requests.user'),
      value: filter.user,
      onInput: user => setFilter({ ...filter, user: user.trim() })
    }),
    h(Search, {
      key: 'id',
      label: t('timeline.requestId'),
      value: filter.id,
      onInput: id => setFilter({ ...filter, id: id.trim() })
    })
  ]
}

function statusText(status: string): string {
  return status === 'failed' ? t('requests.failed') : status
}

function columnsOf(
  choose: (row: RequestRow, from: HTMLElement) => void
): ReadonlyArray<Column<RequestRow>> {
  return [
    {
      key: 'time',
      head: t('requests.time'),
      width: '6.5rem',
      cell: row =>
        h(
          'button',
          {
            'type': 'button',
            'class': 'link',
            'aria-label': t('requests.show', { time: formatTime(row.at), path: row.path }),
            'onClick': ({ currentTarget }: { readonly currentTarget: HTMLElement }) =>
              choose(row, currentTarget)
          },
          formatTime(row.at)
        )
    },
    {
      key: 'status',
      head: t('requests.status'),
      width: '6rem',
      sortBy: ({ status }) => status,
      cell: row => h(StatusPill, { row })
    },
    {
      key: 'request',
      head: t('requests.request'),
      cell: ({ method, path }) => [
        h('span', { class: 'method' }, method),
        h('span', { class: 'mono', title: path }, path)
      ]
    },
    {
      key: 'route',
      head: t('requests.route'),
      width: '9rem',
      hide: 'tablet',
      sortBy: ({ route }) => route,
      cell: ({ route }) => route
    },
    {
      key: 'user',
      head: t('requests.user'),
      width: '8rem',
      hide: 'phone',
      sortBy: ({ user }) => user ?? '',
      cell: ({ user = '–' }) => user
    },
    {
      key: 'ms',
      head: t('requests.duration'),
      width: '5.5rem',
      hide: 'phone',
      isNumber: true,
      sortBy: ({ ms }) => ms,
      cell: ({ ms }) => formatMs(ms)
    }
  ]
}
