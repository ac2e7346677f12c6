import { styleText } from 'node:util'
import columnsOf from 'fast-string-width'
import type { Step } from '../observability/request-story.ts'
import { printable } from '../observability/unprintable.ts'
import type { Output, Shown } from './command.ts'

export function paint(style: Parameters<typeof styleText>[0], text: string, stream: Output) {
  return styleText(style, text, { stream })
}

/** Lines of aligned columns. Cells may hold text of clients, so it is escaped. */
export function aligned(cells: ReadonlyArray<readonly string[]>): string[] {
  const rows = cells.map(row => row.map(printable))
  const widths: number[] = []
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, columnsOf(cell))
    }
  }
  return rows.map(row =>
    row
      .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - columnsOf(cell)))
      .join('  ')
      .trimEnd()
  )
}

export function tableText(lines: NonNullable<Shown['table']>, stream: Output): string {
  const [head = '', ...rows] = aligned(lines)
  return `${[paint('bold', head, stream), ...rows].join('\n')}\n`
}

/** The steps of a request, as `why` and `explain` show them: a name that comes again is blank. */
export function stepLines(steps: readonly Step[]): string[] {
  const rows = steps.map(({ name, text }, index) => [
    steps[index - 1]?.name === name ? '' : name,
    text
  ])
  return aligned(rows).map(line => `  ${line}`)
}
