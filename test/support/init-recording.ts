/**
 * Records `init` at a terminal against the example back-end, and draws docs/images/init.svg of it:
 * `npx node test/support/init-recording.ts`. The lines of the picture are what the command printed.
 */
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { createBackend } from '../../examples/backend/server.ts'
import { running } from './command.ts'

export const pictureFile = 'docs/images/init.svg'

/** The lines of a session in which somebody follows the questions. */
export async function recordInit(): Promise<string[]> {
  const undo: Array<() => unknown> = []
  const backend = createBackend({ port: 0 })
  const place = mkdtempSync(join(tmpdir(), 'gateway-recording-'))
  // A short name: the terminal would wrap the line of a long path.
  symlinkSync(resolve('examples/console'), join(place, 'dist'))
  undo.push(
    () => backend.close(),
    () => rmSync(place, { recursive: true })
  )
  try {
    const url = await backend.listen()
    const command = `cd ${place} && ${process.execPath} ${resolve('src/launch.js')} init shop`
    const terminal = running(each => undo.push(each), 'script', ['-qec', command, '/dev/null'])
    const answers: ReadonlyArray<readonly [question: string, answer: string]> = [
      ['or none', 'dist'],
      ['URL of the back-end', url],
      ['Who vouches', ''],
      ['Path of its sign-in', '/auth/login'],
      ['Members of its body', 'login,secret'],
      ['user name: ', 'dora'],
      ['Its password: ', 'ant.design'],
      ['GET paths', '/orders'],
      ['[y/N]', 'y']
    ]
    for (const [question, answer] of answers) {
      await terminal.says(question)
      terminal.type(`${answer}\r`)
    }
    await terminal.says('has the session secret')
    const text = (await terminal.says('Next:')).replaceAll(url, 'http://127.0.0.1:9001')
    return ['$ npx console-gateway init shop', ...linesOf(text)]
  } finally {
    for (const each of undo.toReversed()) await each()
  }
}

const maxColumns = 100

function linesOf(text: string): string[] {
  return stripVTControlCharacters(text)
    .split(/\r*\n/)
    .map(line => line.replace(/^.*\r/, '').trimEnd())
    .flatMap(line => wrap(line))
}

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
