/** The back-end's response beside the console's: names and types only. */
import type { Json } from '../../json/values.ts'
import { typeLines, typesOf } from './redaction.ts'

const columnWidth = 46
const maxLines = 24

export function sideBySide(left: Json, right: Json): string[] {
  const [said, gets] = [column(left), column(right)]
  const rows = Array.from({ length: Math.max(said.length, gets.length) }, (_, index) =>
    `  ${(said[index] ?? '').padEnd(columnWidth)}  ${gets[index] ?? ''}`.trimEnd()
  )
  const head = `  ${'THE BACK-END SAID'.padEnd(columnWidth)}  THE CONSOLE WILL GET`
  return [head, ...rows]
}

function column(value: Json): string[] {
  const lines = typeLines(typesOf(value)).map(line =>
    line.length > columnWidth ? `${line.slice(0, columnWidth - 1)}…` : line
  )
  if (lines.length <= maxLines) return lines
  return [...lines.slice(0, maxLines - 1), `… and ${lines.length - maxLines + 1} more`]
}
