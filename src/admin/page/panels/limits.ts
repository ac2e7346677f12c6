/** The panel Limits: the use of each limit against its number, and a slider for another number. */
import { type ComponentChildren, h } from 'preact'
import { useState } from 'preact/hooks'
import { useJson } from '../api.ts'
import type { LimitRow, LimitsAnswer } from '../api-types.ts'
import { formatDuration, formatNumber } from '../format.ts'
import { t, word } from '../i18n.ts'
import { Card, Panel } from '../ui/layout.ts'
import { Pill } from '../ui/pill.ts'
import { Shown } from '../ui/states.ts'
import { type Column, Table } from '../ui/table.ts'
import { callerText } from './caller-text.ts'
import { WhatIf } from './what-if.ts'

const everyMs = 5000

export function LimitsPanel(): ComponentChildren {
  const asked = useJson<LimitsAnswer>('limits', everyMs)
  const [chosen, setChosen] = useState<string | undefined>(undefined)
  return h(
    Panel,
    { title: t('limits.title') },
    h(Shown<LimitsAnswer>, {
      asked,
      show: ({ limits, isRecorded }) => {
        const limit = limits.find(each => each.limit === chosen) ?? limits[0]
        return [
          !isRecorded && h('p', { class: 'notice warn' }, t('limits.notRecorded')),
          h(
            Card,
            { title: t('limits.all'), count: limits.length },
            h(Table<LimitRow>, {
              label: t('limits.all'),
              columns: columnsOf(limit?.limit, setChosen),
              rows: limits,
              keyOf: row => row.limit,
              isMarked: row => row.limit === limit?.limit,
              empty: t('limits.none'),
              maxRows: 12
            })
          ),
          isRecorded && limit !== undefined && h(WhatIf, { key: limit.limit, limit })
        ]
      }
    })
  )
}

function columnsOf(
  chosen: string | undefined,
  choose: (limit: string) => void
): ReadonlyArray<Column<LimitRow>> {
  return [
    {
      key: 'limit',
      head: t('limits.limit'),
      sortBy: ({ limit }) => limit,
      cell: ({ limit }) =>
        h(
          'button',
          {
            'type': 'button',
            'class': 'link',
            'aria-pressed': limit === chosen,
            'onClick': () => choose(limit)
          },
          limit
        )
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
      cell: ({ by }) => by.map(each => word('limitBy', each)).join(', ')
    },
    {
      key: 'number',
      head: t('limits.number'),
      width: '7rem',
      isNumber: true,
      sortBy: ({ max }) => max,
      cell: ({ max, windowMs }) =>
        windowMs === undefined
          ? formatNumber(max)
          : `${formatNumber(max)} / ${formatDuration(windowMs)}`
    },
    ...columnsOfUse()
  ]
}

function columnsOfUse(): ReadonlyArray<Column<LimitRow>> {
  return [
    {
      key: 'use',
      head: t('limits.highest'),
      width: '10rem',
      sortBy: ({ highest, max }) => (highest ?? 0) / max,
      cell: row => h(Meter, { row })
    },
    {
      key: 'near',
      head: t('limits.near'),
      hide: 'tablet',
      cell: ({ near = [] }) => {
        const names = near.map(each => `${callerText(each)} ${formatNumber(each.used)}`).join(', ')
        return h('span', { title: names }, names === '' ? '–' : names)
      }
    },
    {
      key: 'refused',
      head: t('limits.refused'),
      width: '6rem',
      hide: 'phone',
      isNumber: true,
      sortBy: ({ refused = 0 }) => refused,
      cell: ({ refused }) => formatNumber(refused)
    },
    {
      key: 'shadow',
      head: t('limits.shadow'),
      width: '6rem',
      isNumber: true,
      hide: 'phone',
      sortBy: ({ shadowRefused = 0 }) => shadowRefused,
      cell: ({ shadowRefused }) => formatNumber(shadowRefused)
    }
  ]
}

function Meter({ row: { highest, max } }: { readonly row: LimitRow }): ComponentChildren {
  const share = highest === undefined ? 0 : highest / max
  const tone = share >= 1 ? 'bad' : 'warn'
  return h(
    'span',
    { class: `meter ${share >= 0.8 ? tone : ''}` },
    h(
      'span',
      { 'class': 'meter-track', 'aria-hidden': 'true' },
      h('i', { style: { width: `${Math.min(100, share * 100)}%` } })
    ),
    h('span', { class: 'meter-text' }, formatNumber(highest))
  )
}
