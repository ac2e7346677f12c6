/** Counts what overload refuses: a metric for each request, and one log line a second for all. */
import type { FastifyBaseLogger } from 'fastify'
import type { Counter, Metrics } from '../observability/metrics.ts'

const everyMs = 1000

export class ShedLog {
  readonly #log: Pick<FastifyBaseLogger, 'warn'>
  readonly #counter: Counter
  #byReason: Record<string, number> = {}
  #last: Readonly<Record<string, unknown>> = {}
  #timer: NodeJS.Timeout | undefined

  constructor(metrics: Metrics, log: Pick<FastifyBaseLogger, 'warn'>) {
    this.#log = log
    this.#counter = metrics.counter(
      'console_gateway_shed_total',
      'Requests and connections that were refused because of overload, by the reason.',
      ['reason']
    )
  }

  /** @param last the fields of a request; of the last one they stand in the line */
  count(reason: string, last: Readonly<Record<string, unknown>>): void {
    this.#counter.labels(reason).inc()
    this.#byReason[reason] = (this.#byReason[reason] ?? 0) + 1
    this.#last = last
    this.#timer ??= setTimeout(() => this.write(), everyMs).unref()
  }

  /** Writes the line of what was not written yet. */
  write(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const shed = this.#byReason
    if (Object.keys(shed).length === 0) return
    this.#byReason = {}
    this.#log.warn(
      { event: 'requests.shed', shed, last: this.#last },
      'refused because of overload'
    )
  }
}
