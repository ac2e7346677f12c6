/** The process's logger: JSON lines, or readable ones for a terminal. */
import { createRequire } from 'node:module'
import pino, { type DestinationStream, type Logger } from 'pino'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { adopt } from '../observability/emitters.ts'
import { createLineWriter } from '../observability/lines.ts'
import { showInJson } from '../observability/unprintable.ts'

export type Log = Logger

// For terminals only, so that nobody else waits for it.
const require = createRequire(import.meta.url)

export function writeLines(log: Log, lines: string): void {
  ;(log as never as Record<symbol, DestinationStream>)[pino.symbols.streamSym]?.write(lines)
}

export function createLogger(
  { level, format }: GatewayConfig['log'],
  destination?: DestinationStream
): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    serializers: { err: errorFields },
    formatters: { level: (label: string) => ({ level: label }) }
  }
  return pino(options, destination ?? outputOf(format))
}

function outputOf(format: GatewayConfig['log']['format']): DestinationStream {
  // Asked also because it makes standard output a pipe that does not wait for its reader.
  const { isTTY } = process.stdout
  if (format === 'pretty' || (format === 'auto' && isTTY)) return prettyOutput()
  const lines = createLineWriter(1)
  process.on('exit', lines.flush)
  return lines
}

function prettyOutput(): DestinationStream {
  const pretty = require('pino-pretty') as typeof import('pino-pretty')
  const stream = adopt(pretty({ translateTime: 'SYS:HH:MM:ss.l', singleLine: true, sync: true }))
  return { write: line => void stream.write(showInJson(line)) }
}

/** An ioredis error also carries the command's arguments, and so a session's data. */
function errorFields(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name, message, stack, cause } = error
  const { code } = error as NodeJS.ErrnoException
  return {
    type: name,
    code,
    message,
    stack,
    cause: cause === undefined ? undefined : errorFields(cause)
  }
}
