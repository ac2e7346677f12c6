/** Counts what overload refuses: a metric for each request, and one log line a second for all. */
import type { FastifyBaseLogger } from 'fastify'
import type { Metrics } from '../observability/metrics.ts'

const everyMs = 1000

type Fields = Readonly<Record<string, unknown>>

export type ShedLog = ReturnType<typeof createShedLog>

export function createShedLog(metrics: Metrics, log: Pick<FastifyBaseLogger, 'warn'>) {
  const counter = metrics.counter(
    'console_gateway_shed_total',
    'Requests and connections that were refused because of overload, by the reason.',
    ['reason']
  )
  let shed: Record<string, number> = {}
  let last: Fields = {}
  let timer: NodeJS.Timeout | undefined

  /** Writes the line of what was not written yet. */
  function write(): void {
    clearTimeout(timer)
    timer = undefined
    if (Object.keys(shed).length === 0) return
    log.warn({ event: 'requests.shed', shed, last }, 'refused because of overload')
    shed = {}
  }

  /** @param fields of the request; of the last one they stand in the line */
  function count(reason: string, fields: Fields): void {
    counter.labels(reason).inc()
    shed[reason] = (shed[reason] ?? 0) + 1
    last = fields
    timer ??= setTimeout(write, everyMs).unref()
  }
  return { count, write }
}
