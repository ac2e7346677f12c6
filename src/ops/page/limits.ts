/** Limits: the number of each, how much of it was needed, and who was refused. */
import type { LimitRow } from '../limits.ts'
import { duration, number, percent } from './format.ts'
import { html, type Html } from './html.ts'
import { card, type Column, linkTo, pill, table } from './parts.ts'

const maxShown = 5

const columns: ReadonlyArray<Column<LimitRow>> = [
  {
    head: 'Limit',
    cell: ({ limit, by }) => html`${limit} <small>by ${[by].flat().join(', ')}</small>`
  },
  {
    head: 'Mode',
    kind: 'extra',
    cell: ({ mode }) => pill(mode === 'enforce' ? 'ok' : 'plain', mode)
  },
  {
    head: 'Number',
    kind: 'number',
    cell: ({ max, windowMs }) => `${number(max)} in ${duration(windowMs)}`
  },
  { head: 'This hour', kind: 'number', cell: ({ hour }) => number(hour?.used) },
  { head: 'Of it', kind: 'number', cell: ({ hour, max }) => percent((hour?.used ?? 0) / max) },
  { head: '24 hours', kind: 'number extra', cell: ({ day }) => number(day?.used) },
  {
    head: 'Over it, or near',
    kind: 'wide',
    cell: ({ over, nearest }) =>
      [...new Set([...over, ...nearest.map(({ caller }) => caller)])]
        .slice(0, maxShown)
        .map(caller => [
          linkTo('users', { search: caller }, caller),
          over.includes(caller) && [' ', pill('bad', 'over')],
          ' '
        ])
  }
]

export function limitsPage(limits: readonly LimitRow[]): Html {
  return html`
    ${card(
      { title: 'Highest use by one caller', count: limits.length },
      table(limits, columns, 'The config has no limits.')
    )}
    <p class="empty">
      As this process counted it since the beginning of the hour. A number a little above the
      highest use of some usual days refuses nobody.
    </p>
  `
}
