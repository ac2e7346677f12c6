/** `ops`: a link that opens the operators' page once. */
import { spawn } from 'node:child_process'
import { adopt } from '../observability/emitters.ts'
import { ask } from './ask.ts'
import { CommandError, type Invocation, type Io } from './command.ts'
import { jsonText } from './output.ts'

export async function ops({
  gateway,
  values: { open = false },
  json,
  io
}: Invocation<{ readonly open?: boolean }>): Promise<number> {
  const { url: local } = await ask(gateway, '/ops/api/link', {})
  const link = typeof local === 'string' ? URL.parse(local) : null
  if (link === null) throw new CommandError('The response to /ops/api/link has no link.')
  // From afar, the gateway's own address is not the one by which it is reached.
  const isHere = gateway?.socketPath !== undefined
  const url = isHere ? link.href : `${gateway?.base}${link.pathname}`
  io.stdout.write(json ? jsonText({ url }) : `${url}\n`)
  io.stderr.write('It opens the operators’ page once, within two minutes.\n')
  if (open || hasBrowser(io)) openInBrowser(url)
  return 0
}

function hasBrowser({ stdout, env }: Io): boolean {
  if (stdout.isTTY !== true || env['SSH_CONNECTION'] !== undefined) return false
  const isDesktop = process.platform === 'darwin' || process.platform === 'win32'
  return isDesktop || (env['DISPLAY'] ?? env['WAYLAND_DISPLAY'] ?? '') !== ''
}

const openers: Readonly<Record<string, readonly [program: string, ...words: string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', '""']
}

/** Without a browser nothing happens: the link is printed. */
function openInBrowser(url: string): void {
  const [program, ...words] = openers[process.platform] ?? ['xdg-open']
  adopt(spawn(program, [...words, url], { stdio: 'ignore', detached: true })).unref()
}
