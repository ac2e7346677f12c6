/** The panel Limits: the highest use of each limit against its number, and who is near it. */
import { type ComponentChildren, h } from 'preact'
import { useJson } from '../api.ts'
import type { LimitRow, LimitsAnswer } from '../api-types.ts'
import { formatDuration, formatNumber } from '../format.ts'
import { t, word } from '../words.ts'
import { isolated } from '../plain-text.ts'
import { Card, Panel } from '../ui/layout.ts'
import { Pill } from '../ui/pill.ts'
import { Shown } from '../ui/states.ts'
import { type Column, Table } from '../ui/table.ts'

const everyMs = 5000

export function LimitsPanel(): ComponentChildren {
  const asked = useJson<LimitsAnswer>('limits', everyMs)
  return h(
    Panel,
    { title: t('limits.title') },
    h(Shown<LimitsAnswer>, {
      asked,
      show: ({ limits }) =>
        h(
          Card,
          { title: t('limits.all'), count: limits.length },
          h(Table<LimitRow>, {
            label: t('limits.all'),
            columns: columns(),
            rows: limits,
            keyOf: row => row.limit,
            empty: t('limits.none'),
            maxRows: 12
          })
        )
    })
  )
}

function columns(): ReadonlyArray<Column<LimitRow>> {
  return [
    {
      key: 'limit',
      head: t('limits.limit'),
      sortBy: ({ limit }) => limit,
      cell: ({ limit }) => limit
    },
    {
      key: 'mode',
      head: t('limits.mode'),
      width: '7.4rem',
      hide: 'phone',
      cell: ({ mode }) =>
        h(Pill, { tone: mode === 'enforce' ? 'ok' : 'plain', text: word('limitMode', mode) })
    },
    {
      key: 'by',
      head: t('limits.by'),
      width: '8rem',
      hide: 'tablet',
      cell: ({ by }) =>
        by.map(each => (each.startsWith('profile.') ? each : word('limitBy', each))).join(', ')
    },
    {
      key: 'number',
      head: t('limits.number'),
      width: '7rem',
      isNumber: true,
      sortBy: ({ max }) => max,
      cell: ({ max, windowMs }) => `${formatNumber(max)} / ${formatDuration(windowMs)}`
    },
    ...columnsOfUse()
  ]
}

function columnsOfUse(): ReadonlyArray<Column<LimitRow>> {
  return [
    {
      key: 'hour',
      head: t('limits.hour'),
      width: '10rem',
      sortBy: ({ hour, max }) => (hour?.used ?? 0) / max,
      cell: row => h(Meter, { row })
    },
    {
      key: 'day',
      head: t('limits.day'),
      width: '7rem',
      hide: 'phone',
      isNumber: true,
      sortBy: ({ day, max }) => (day?.used ?? 0) / max,
      cell: ({ day }) => formatNumber(day?.used)
    },
    {
      key: 'over',
      head: t('limits.over'),
      cell: ({ over }) => names(over)
    },
    {
      key: 'near',
      head: t('limits.near'),
      hide: 'tablet',
      cell: ({ nearest, over }) =>
        names(
          nearest
            .filter(({ caller }) => !over.includes(caller))
            .map(({ caller, used }) => `${caller} ${formatNumber(used)}`)
        )
    }
  ]
}

function names(all: readonly string[]): ComponentChildren {
  const text = all.map(isolated).join(', ')
  return h('span', { title: text }, text === '' ? '–' : text)
}

function Meter({ row: { hour, max } }: { readonly row: LimitRow }): ComponentChildren {
  const share = (hour?.used ?? 0) / max
  const tone = share >= 1 ? 'bad' : 'warn'
  return h(
    'span',
    { class: `meter ${share >= 0.8 ? tone : ''}` },
    h(
      'span',
      { 'class': 'meter-track', 'aria-hidden': 'true' },
      h('i', { style: { width: `${Math.min(100, share * 100)}%` } })
    ),
    h('span', { class: 'meter-text' }, formatNumber(hour?.used))
  )
}
