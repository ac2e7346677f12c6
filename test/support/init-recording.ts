/**
 * Records `init` at a terminal against the example back-end, and draws docs/images/init.svg of it:
 * `npx node test/support/init-recording.ts`. The lines of the picture are what the command printed.
 */
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createBackend } from '../../examples/backend/server.ts'
import { askedInit } from './init.ts'
import { temporaryFolder } from './temporary.ts'

export const pictureFile = 'docs/images/init.svg'

/** The lines of a session in which somebody follows the questions. */
export async function recordInit(): Promise<string[]> {
  const backend = createBackend({ port: 0 })
  const place = temporaryFolder()
  cpSync('examples/console', join(place, 'dist'), { recursive: true })
  try {
    const url = await backend.listen()
    const { shown } = await askedInit(
      join(place, 'shop'),
      [],
      [
        ['The console: ', join(place, 'dist')],
        ['Its preset', ''],
        ['URL of the back-end', url],
        ['GET paths', '/orders'],
        ['Preset of the back-end', ''],
        ['Who vouches', ''],
        ['Path of its sign-in', '/auth/login'],
        ['Members of its body', 'login,secret'],
        ['Its format', ''],
        ['An account', 'dora'],
        ['Its password', 'ant.design'],
        ['Write the files', 'y']
      ]
    )
    const text = shown.replaceAll(url, 'http://127.0.0.1:9001').replaceAll(`${place}/`, '')
    const lines = screenOf(text).filter(line => line !== '│')
    return ['$ npx console-gateway init shop', ...lines.flatMap(line => wrap(line))]
  } finally {
    await backend.close()
  }
}

/** What a terminal shows in the end. */
function screenOf(text: string): string[] {
  const rows: string[] = []
  let [row, column] = [0, 0]
  for (const [part, count, code] of text.matchAll(/\u001B\[\??([\d;]*)([A-Za-z])|[^]/g)) {
    const line = rows[row] ?? ''
    const moves = Number(count ?? '') || 1
    if (part === '\n') [row, column] = [row + 1, 0]
    else if (part === '\r') column = 0
    else if (code === undefined) rows[row] = line.padEnd(column).slice(0, column++) + part
    else if (code === 'A') row = Math.max(0, row - moves)
    else if (code === 'B') row += moves
    else if (code === 'D') column = Math.max(0, column - moves)
    else if (code === 'G') column = moves - 1
    else if (code === 'J') rows.splice(row, rows.length, line.slice(0, column))
    else if (code === 'K') rows[row] = count === '2' ? '' : line.slice(0, column)
  }
  return Array.from(rows, line => (line ?? '').trimEnd())
}

const maxColumns = 100

function wrap(line: string): string[] {
  if (line.length <= maxColumns) return [line]
  const at = line.lastIndexOf(' ', maxColumns)
  return at <= 0 ? [line] : [line.slice(0, at), ...wrap(`    ${line.slice(at + 1)}`)]
}

const lineHeight = 18
const lineSeconds = 0.15

/** An SVG whose lines appear one after the other, as text that can be read and searched. */
export function drawTerminal(lines: readonly string[]): string {
  const height = lines.length * lineHeight + 40
  const rows = lines.map((line, index) => {
    const delay = (index * lineSeconds).toFixed(2)
    const place = `x="16" y="${34 + index * lineHeight}" style="animation-delay:${delay}s"`
    const style = line.startsWith('$') ? ' class="typed"' : ''
    return `  <text ${place}${style} xml:space="preserve">${escaped(line)}</text>`
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 ${height}" role="img" aria-label="A terminal in which console-gateway init asks, looks at a back-end and writes a config folder">
  <style>
    text { font: 13.5px ui-monospace, monospace; fill: #d8dbe6; opacity: 0; animation: appear 0.1s forwards }
    .typed { fill: #8fd6a4 }
    @keyframes appear { to { opacity: 1 } }
    @media (prefers-reduced-motion: reduce) { text { animation: none; opacity: 1 } }
  </style>
  <rect width="860" height="${height}" rx="10" fill="#1c1f2e"/>
${rows.join('\n')}
</svg>
`
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

if (import.meta.main) {
  writeFileSync(pictureFile, drawTerminal(await recordInit()))
  process.stdout.write(`drew ${pictureFile}\n`)
}
