/** Handles errors that nothing caught. */
import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { fileURLToPath } from 'node:url'
import type { Metrics } from '../../observability/metrics.ts'
import type { Log } from '../../services/services.ts'

interface Options {
  readonly log: () => Pick<Log, 'error' | 'fatal'>
  /** Called once: takes no more requests, lets those in flight finish, ends the process. */
  readonly onFatal: (error: unknown) => void
}

/** The folder of the gateway's code: `src/`, or `dist/`, where packages share its files. */
const isBuilt = !import.meta.url.endsWith('.ts')
const home = new URL(isBuilt ? './' : '../../', import.meta.url).href

let strays = 0

/**
 * The number of error events of sockets and streams without a listener. Each is a bug of the
 * gateway.
 */
export const strayErrors = (): number => strays

export function measureStrayErrors(metrics: Metrics): void {
  const name = 'console_gateway_stray_errors_total'
  const help = 'Error events of sockets and streams that had no listener; the process went on.'
  metrics.read({ type: 'counter', name, help, read: () => [[[], strays]] })
}

/** Counts stray errors from now on, also those that other code handles. */
export function countStrays(): void {
  process.off('uncaughtExceptionMonitor', count).on('uncaughtExceptionMonitor', count)
}

function count(error: unknown, origin: NodeJS.UncaughtExceptionOrigin): void {
  if (isStray(error, origin)) strays++
}

/**
 * An error event of a socket or stream without a listener is logged and counted, and the process
 * goes on: only that stream is broken. After any other error the state is unknown, so the process
 * ends.
 */
export function catchUncaught({ log, onFatal }: Options): void {
  let isEnding = false
  countStrays()
  process.on('uncaughtException', (error: unknown, origin) => {
    if (isStray(error, origin)) {
      log().error({ event: 'process.stray-error', err: error }, 'an error event without a listener')
      return
    }
    log().fatal(
      { event: 'process.uncaught', err: error },
      `internal error: ${origin}; the process ends`
    )
    if (isEnding) return
    isEnding = true
    onFatal(error)
  })
}

/** Whether a socket or stream raised it, not code of the gateway: by its code and its stack. */
export function isStray(error: unknown, origin: NodeJS.UncaughtExceptionOrigin): boolean {
  if (origin !== 'uncaughtException' || !(error instanceof Error)) return false
  const { code, errno } = error as NodeJS.ErrnoException
  if (typeof code !== 'string') return false
  const isOfNetwork = code.startsWith('HPE_') || code.startsWith('UND_ERR_')
  const isOfSystem = typeof errno === 'number' || /^E[A-Z0-9]+$/.test(code)
  return (isOfNetwork || isOfSystem) && !hasOwnFrame(error.stack ?? '')
}

const frame = /(file:\/\/[^\s()]+?):(\d+):(\d+)\)?$/gm

function hasOwnFrame(stack: string): boolean {
  for (const [, file = '', line, column] of stack.matchAll(frame)) {
    if (!file.startsWith(home)) continue
    if (!isBuilt || !isOfPackage(file, Number(line), Number(column))) return true
  }
  return false
}

/** In `dist/` packages share files with the gateway; only the source map tells them apart. */
function isOfPackage(file: string, line: number, column: number): boolean {
  try {
    const text = readFileSync(`${fileURLToPath(file)}.map`, 'utf8')
    const entry = new SourceMap(JSON.parse(text)).findEntry(line - 1, column - 1)
    return 'originalSource' in entry && entry.originalSource.includes('node_modules/')
  } catch {
    return false
  }
}
