/** A table of which only the visible rows are in the document, sorted by any column. */
import { type ComponentChildren, h } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { t } from '../words.ts'
import { Empty } from './states.ts'

export interface Column<T> {
  readonly key: string
  readonly head: string
  readonly cell: (row: T) => ComponentChildren
  /** Numbers are aligned to the right. */
  readonly isNumber?: boolean
  /** The key by which the column is sorted; without it the column cannot be sorted. */
  readonly sortBy?: (row: T) => string | number
  /** A CSS width; the others share the rest. */
  readonly width?: string
  /** Left out on narrow screens: `phone`, or `tablet` and phone. */
  readonly hide?: 'phone' | 'tablet'
}

interface TableProps<T> {
  readonly label: string
  readonly columns: ReadonlyArray<Column<T>>
  readonly rows: readonly T[]
  readonly keyOf: (row: T) => string
  readonly empty?: ComponentChildren
  /** Sorted so at first; without it the order of the rows. */
  readonly sort?: Sort
  readonly isMarked?: (row: T) => boolean
  /** Grows with its rows, up to this many; more are scrolled. */
  readonly maxRows?: number
}

interface Sort {
  readonly key: string
  readonly isDescending: boolean
}

const rowHeight = 36
const headHeight = 34
/** Rows above and below the visible ones, so that fast scrolling shows no gaps. */
const overscan = 12

/** Indexes of the rows in view. */
function useWindow(count: number) {
  const scroller = useRef<HTMLDivElement>(null)
  const [range, setRange] = useState({ first: 0, last: 40 })
  const update = () => {
    const element = scroller.current
    if (element === null) return
    const first = Math.max(0, Math.floor(element.scrollTop / rowHeight) - overscan)
    const last = Math.ceil((element.scrollTop + element.clientHeight) / rowHeight) + overscan
    setRange(current =>
      current.first === first && current.last === last ? current : { first, last }
    )
  }
  useEffect(() => {
    update()
    addEventListener('resize', update)
    return () => removeEventListener('resize', update)
  }, [count])
  return { scroller, onScroll: update, first: Math.min(range.first, count), last: range.last }
}

export function Table<T>(props: TableProps<T>): ComponentChildren {
  const { label, columns, rows, keyOf, empty, isMarked, maxRows = 16 } = props
  const [sort, setSort] = useState(props.sort)
  const { scroller, onScroll, first, last } = useWindow(rows.length)
  const sorted = useMemo(() => sortRows(rows, columns, sort), [rows, sort])
  if (rows.length === 0) return h(Empty, null, empty ?? t('common.none'))
  const shown = sorted.slice(first, last)
  const below = Math.max(0, sorted.length - first - shown.length)
  return h(
    'div',
    {
      'class': 'table',
      'ref': scroller,
      onScroll,
      'tabIndex': 0,
      'role': 'group',
      'aria-label': label,
      'style': { maxHeight: `${headHeight + rowHeight * maxRows}px` }
    },
    h(
      'table',
      { 'aria-rowcount': rows.length + 1, 'aria-label': label },
      h(
        'colgroup',
        null,
        columns.map(({ key, width, hide }) =>
          h('col', { key, class: hideClass(hide), style: width === undefined ? {} : { width } })
        )
      ),
      h('thead', null, h(HeadRow<T>, { columns, sort, setSort })),
      h(
        'tbody',
        null,
        first > 0 && h(Spacer, { key: 'above', rows: first }),
        shown.map((row, index) =>
          h(
            'tr',
            {
              'key': keyOf(row),
              'aria-rowindex': first + index + 2,
              'class': isMarked?.(row) === true ? 'marked' : ''
            },
            columns.map(column => h(Cell<T>, { key: column.key, column, row }))
          )
        ),
        below > 0 && h(Spacer, { key: 'below', rows: below })
      )
    )
  )
}

function Spacer({ rows }: { readonly rows: number }): ComponentChildren {
  return h(
    'tr',
    { 'aria-hidden': 'true', 'class': 'spacer' },
    h('td', { style: { height: `${rows * rowHeight}px` } })
  )
}

function Cell<T>({
  column,
  row
}: {
  readonly column: Column<T>
  readonly row: T
}): ComponentChildren {
  const { isNumber = false, hide } = column
  return h('td', { class: `${isNumber ? 'number ' : ''}${hideClass(hide)}` }, column.cell(row))
}

interface HeadRowProps<T> {
  readonly columns: ReadonlyArray<Column<T>>
  readonly sort: Sort | undefined
  readonly setSort: (sort: Sort) => void
}

function HeadRow<T>({ columns, sort, setSort }: HeadRowProps<T>): ComponentChildren {
  return h(
    'tr',
    { 'aria-rowindex': 1 },
    columns.map(({ key, head, isNumber = false, sortBy, hide }) => {
      const isSorted = sort?.key === key
      const direction = sort?.isDescending === true ? 'descending' : 'ascending'
      const isDescending = isSorted ? !sort.isDescending : isNumber
      return h(
        'th',
        {
          key,
          scope: 'col',
          class: `${isNumber ? 'number ' : ''}${hideClass(hide)}`,
          ...(isSorted && { 'aria-sort': direction })
        },
        sortBy === undefined
          ? head
          : h(
              'button',
              { type: 'button', class: 'sort', onClick: () => setSort({ key, isDescending }) },
              head,
              h(
                'span',
                { 'aria-hidden': 'true', 'class': 'direction' },
                isSorted ? arrowOf(direction) : ''
              )
            )
      )
    })
  )
}

function arrowOf(direction: 'ascending' | 'descending'): string {
  return direction === 'ascending' ? '↑' : '↓'
}

function hideClass(hide: 'phone' | 'tablet' | undefined): string {
  return hide === undefined ? '' : `hide-${hide}`
}

function sortRows<T>(
  rows: readonly T[],
  columns: ReadonlyArray<Column<T>>,
  sort: Sort | undefined
): readonly T[] {
  const sortBy = columns.find(({ key }) => key === sort?.key)?.sortBy
  if (sortBy === undefined || sort === undefined) return rows
  const sign = sort.isDescending ? -1 : 1
  return rows.toSorted((a, b) => sign * compare(sortBy(a), sortBy(b)))
}

function compare(a: string | number, b: string | number): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  if (a === b) return 0
  return a < b ? -1 : 1
}
