/** The lockouts of sign-in, with the act that lifts one. */
import { type ComponentChildren, h } from 'preact'
import { useJson } from '../api.ts'
import type { LockoutRow, LockoutsAnswer } from '../api-types.ts'
import { formatAgo, formatTime } from '../format.ts'
import { t, word } from '../words.ts'
import { confirmAct } from '../ui/confirm.ts'
import { Card } from '../ui/layout.ts'
import { Shown } from '../ui/states.ts'
import { type Column, Table } from '../ui/table.ts'

const everyMs = 10_000

export function LockoutsCard(): ComponentChildren {
  const asked = useJson<LockoutsAnswer>('lockouts', everyMs)
  const columns: ReadonlyArray<Column<LockoutRow>> = [
    {
      key: 'kind',
      head: t('lockouts.kind'),
      width: '9rem',
      hide: 'phone',
      cell: row => word('lockout', row.kind)
    },
    {
      key: 'of',
      head: t('lockouts.of'),
      cell: row => h('span', { title: ofWhom(row) }, ofWhom(row))
    },
    {
      key: 'until',
      head: t('lockouts.until'),
      width: '8rem',
      sortBy: ({ until }) => until,
      cell: ({ until }) => h('span', { title: formatTime(until) }, formatAgo(until))
    },
    {
      key: 'acts',
      head: t('common.acts'),
      width: '5rem',
      cell: row => h(LiftButton, { row, reload: asked.reload })
    }
  ]
  return h(
    Card,
    { title: t('lockouts.title'), count: asked.data?.total },
    h(Shown<LockoutsAnswer>, {
      asked,
      show: ({ lockouts }) =>
        h(Table<LockoutRow>, {
          label: t('lockouts.title'),
          columns,
          rows: lockouts,
          keyOf: row => `${row.kind} ${ofWhom(row)}`,
          empty: t('lockouts.none'),
          maxRows: 8
        })
    })
  )
}

function ofWhom({ account, address }: LockoutRow): string {
  return [account, address].filter(part => part !== undefined).join(' · ')
}

interface LiftProps {
  readonly row: LockoutRow
  readonly reload: () => void
}

function LiftButton({ row, reload }: LiftProps): ComponentChildren {
  const { account, address } = row
  const of = account ?? address ?? ''
  const lift = () => {
    confirmAct({
      title: t('lockouts.lift'),
      text: t('lockouts.liftText', { of }),
      path: 'lockouts/lift',
      body: account === undefined ? { address } : { account },
      onDone: reload
    })
  }
  return h(
    'button',
    {
      'type': 'button',
      'class': 'button small',
      'aria-label': t('lockouts.liftLabel', { of }),
      'onClick': lift
    },
    t('lockouts.liftShort')
  )
}
