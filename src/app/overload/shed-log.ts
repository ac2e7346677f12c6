/** Counts what overload refuses: a metric for each request, and one log line a second for all. */
import type { FastifyBaseLogger } from 'fastify'
import type { Counter, Family, Metrics } from '../../observability/metrics.ts'

const everyMs = 1000

export class ShedLog {
  readonly #log: Pick<FastifyBaseLogger, 'warn'>
  readonly #counter: Family<Counter>
  #byReason: Record<string, number> = {}
  #example: Readonly<Record<string, string>> = {}
  #timer: NodeJS.Timeout | undefined

  constructor(metrics: Metrics, log: Pick<FastifyBaseLogger, 'warn'>) {
    this.#log = log
    this.#counter = metrics.counter(
      'console_gateway_shed_total',
      'Requests and connections that were refused because of overload, by the reason.',
      ['reason']
    )
  }

  /** @param example of a second's requests, the last one stands in its line */
  count(reason: string, example: Readonly<Record<string, string>>): void {
    this.#counter.with(reason).inc()
    this.#byReason[reason] = (this.#byReason[reason] ?? 0) + 1
    this.#example = example
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
      { event: 'requests.shed', shed, last: this.#example },
      'refused because of overload'
    )
  }
}
