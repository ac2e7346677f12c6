import type { LimitRow } from '../limits.ts'
import { duration, number, percent } from './format.ts'
import { type Content, html, type Html } from '../../app/hooks/html.ts'
import { card, type Column, linkTo, pill, table } from './parts.ts'

const maxShown = 5

const columns: ReadonlyArray<Column<LimitRow>> = [
  ['Limit', '', ({ limit, by }) => html`${limit} <small>by ${[by].flat().join(', ')}</small>`],
  ['Mode', 'extra', ({ mode }) => pill(mode === 'enforce' ? 'ok' : 'plain', mode)],
  ['Number', 'number', ({ max, windowMs }) => `${number(max)} in ${duration(windowMs)}`],
  ['This hour', 'number', ({ hour }) => number(hour?.used)],
  ['Of it', 'number', ({ hour, max }) => percent((hour?.used ?? 0) / max)],
  ['24 hours', 'number extra', ({ day }) => number(day?.used)],
  ['Over it, or near', 'wide', overOrNear]
]

function overOrNear({ over, nearest }: LimitRow): Content {
  const callers = new Set([...over, ...nearest.map(({ caller }) => caller)])
  return [...callers].slice(0, maxShown).map(caller => {
    const mark = over.includes(caller) && [' ', pill('bad', 'over')]
    return [linkTo('users', { search: caller }, caller), mark, ' ']
  })
}

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
