/** A request's logger: the process's own, with the request id in each line. */
import type { FastifyBaseLogger } from 'fastify'

type Fields = Record<string, unknown>

/**
 * Replaces pino's child logger, which serializes the id for each request: most write one line.
 * Calls take `(fields, message)` or `(message)`, as ours and Fastify's do.
 */
class RequestLog {
  readonly #base: FastifyBaseLogger
  readonly #requestId: string
  /** Set where the request belongs to a trace that somebody records. */
  traceId: string | undefined = undefined
  constructor(base: FastifyBaseLogger, requestId: string) {
    this.#base = base
    this.#requestId = requestId
  }

  get level(): string {
    return this.#base.level
  }

  fatal(fields: unknown, message?: string): void {
    this.#base.fatal(this.#with(fields), message ?? textOf(fields))
  }
  error(fields: unknown, message?: string): void {
    this.#base.error(this.#with(fields), message ?? textOf(fields))
  }
  warn(fields: unknown, message?: string): void {
    this.#base.warn(this.#with(fields), message ?? textOf(fields))
  }
  info(fields: unknown, message?: string): void {
    this.#base.info(this.#with(fields), message ?? textOf(fields))
  }
  debug(fields: unknown, message?: string): void {
    this.#base.debug(this.#with(fields), message ?? textOf(fields))
  }
  trace(fields: unknown, message?: string): void {
    this.#base.trace(this.#with(fields), message ?? textOf(fields))
  }
  silent(): void {}
  child(bindings: Fields): FastifyBaseLogger {
    return this.#base.child({ requestId: this.#requestId, ...bindings })
  }

  #with(fields: unknown): Fields {
    const { traceId } = this
    const ids = { requestId: this.#requestId, ...(traceId !== undefined && { traceId }) }
    if (fields instanceof Error) return { ...ids, err: fields }
    return typeof fields === 'object' ? { ...ids, ...fields } : ids
  }
}

function textOf(fields: unknown): string | undefined {
  if (typeof fields === 'string') return fields
  return fields instanceof Error ? fields.message : undefined
}

export const requestLog = (base: FastifyBaseLogger, requestId: string): FastifyBaseLogger =>
  new RequestLog(base, requestId) as FastifyBaseLogger

/** Adds the trace to all lines of a request. */
export function addTraceId(log: FastifyBaseLogger, traceId: string): void {
  if (log instanceof RequestLog) log.traceId = traceId
}
