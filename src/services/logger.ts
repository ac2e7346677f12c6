/** The process's logger: JSON lines, or readable ones for a terminal. */
import { createRequire } from 'node:module'
import pino, { type DestinationStream, type Logger } from 'pino'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { adopt } from '../observability/emitters.ts'
import { addLineOutput, isoTime, standardOutput } from '../observability/log.ts'
import { showInJson } from '../observability/unprintable.ts'

export type Log = Logger

// For terminals only, so that nobody else waits for it.
const require = createRequire(import.meta.url)

/**
 * @param destination where lines go; standard output without it
 * @param base what every line says
 */
export function createLogger(
  { level, format }: GatewayConfig['log'],
  destination?: DestinationStream,
  base: Readonly<Record<string, unknown>> | null = null
): Logger {
  const timestamp = isoTime()
  const options = { level, base, timestamp, serializers: { err: errorFields } }
  const readable =
    destination === undefined &&
    (format === 'pretty' || (format === 'auto' && process.stdout.isTTY))
  if (readable) return pino(options, prettyOutput())
  const output = destination ?? standardOutput()
  const formatters = { level: (label: string) => ({ level: label }) }
  const logger = pino({ ...options, formatters }, output)
  addLineOutput(logger, { output, timestamp, base: base ?? {} })
  return logger
}

function prettyOutput(): DestinationStream {
  const pretty = require('pino-pretty') as typeof import('pino-pretty')
  const stream = adopt(pretty({ translateTime: 'SYS:HH:MM:ss.l', singleLine: true, sync: true }))
  return {
    write: line => {
      stream.write(showInJson(line))
    }
  }
}

/**
 * Of an error only these: an ioredis error carries the command's arguments, and so a session's
 * data.
 */
function errorFields(error: unknown): object {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name, message, stack, cause } = error
  const { code } = error as NodeJS.ErrnoException
  return {
    type: name,
    ...(code !== undefined && { code }),
    message,
    stack,
    ...(cause !== undefined && { cause: errorFields(cause) })
  }
}
