/**
 * The number and the durations of each route's requests in the last seconds. Reads
 * the metrics once a second, so that a request costs nothing more.
 */
import type { Counter, Histogram, Metrics } from '../observability/metrics.ts'
import { buckets, requestFamilies } from './hooks/metrics.ts'

/** Upper bounds of the buckets in milliseconds; one more bucket is without a bound. */
export const boundsMs: readonly number[] = buckets.map(seconds => seconds * 1000)

/** Of one route in the period. */
export interface RouteCounts {
  readonly route: string
  readonly requests: number
  /** Responses with a status of 500 or more. */
  readonly errors: number
  /** One for each of `boundsMs`, and the rest. */
  readonly buckets: readonly number[]
}

/** The numbers of a route in a row: requests, errors, buckets. */
const firstBucket = 2
const width = firstBucket + boundsMs.length

export class RequestRates {
  readonly #families: ReturnType<typeof requestFamilies>
  readonly #rows = new Map<string, number>()
  readonly #routes: string[] = []
  readonly #durations: Histogram[] = []
  readonly #errors: Array<{ readonly counter: Counter; readonly row: number }> = []
  #knownCounters = 0

  constructor(metrics: Metrics) {
    this.#families = requestFamilies(metrics)
  }

  get inFlight(): number {
    return this.#families.inFlight.with().value
  }

  /** All numbers as they are now; they only rise. */
  read(): Uint32Array {
    this.#follow()
    const rows = new Uint32Array(this.#routes.length * width)
    let at = 0
    for (const { count, counts } of this.#durations) {
      rows[at] = count
      for (let index = 0; index < counts.length; index++) {
        rows[at + firstBucket + index] = counts[index] as number
      }
      at += width
    }
    for (const { counter, row } of this.#errors) (rows[row * width + 1] as number) += counter.value
    return rows
  }

  /** Of the routes that had requests since `before`. */
  since(before: Uint32Array): RouteCounts[] {
    const now = this.read()
    const active: RouteCounts[] = []
    for (let at = 0; at < now.length; at += width) {
      const difference = (index: number) =>
        ((now[at + index] ?? 0) - (before[at + index] ?? 0)) >>> 0
      const requests = difference(0)
      if (requests === 0) continue
      const counts = boundsMs.map((_, index) => difference(firstBucket + index))
      const rest = requests - counts.reduce((sum, count) => sum + count, 0)
      active.push({
        route: this.#routes[at / width] as string,
        requests,
        errors: difference(1),
        buckets: [...counts, rest]
      })
    }
    return active
  }

  /** Takes over series that came since the last time. */
  #follow(): void {
    const { durations, requests } = this.#families
    for (const { labels, cell } of durations.list().slice(this.#durations.length)) {
      const route = labels['route'] ?? ''
      this.#rows.set(route, this.#durations.length)
      this.#routes.push(route)
      this.#durations.push(cell)
    }
    const counters = requests.list()
    for (const { labels, cell } of counters.slice(this.#knownCounters)) {
      const row = this.#rows.get(labels['route'] ?? '')
      if (labels['status'] === '5xx' && row !== undefined) this.#errors.push({ counter: cell, row })
    }
    this.#knownCounters = counters.length
  }
}
