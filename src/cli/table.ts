/** Tables for people. */
import columnsOf from 'fast-string-width'
import { printable } from '../observability/unprintable.ts'
import type { Output } from './command.ts'
import { paint } from './output.ts'

/** Aligned columns; the first row is the head. Cells may hold text of clients, so it is escaped. */
export function table(cells: ReadonlyArray<readonly string[]>, stream: Output): string {
  const rows = cells.map(row => row.map(printable))
  const widths = (rows[0] ?? []).map((_, column) =>
    Math.max(...rows.map(row => columnsOf(row[column] ?? '')))
  )
  const lines = rows.map(row =>
    row
      .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - columnsOf(cell)))
      .join('  ')
      .trimEnd()
  )
  return lines
    .map((line, index) => `${index === 0 ? paint('bold', line, stream) : line}\n`)
    .join('')
}
