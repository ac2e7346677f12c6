/** The numbers and durations of each route's requests, for what operators see of the last seconds. */

/** Upper bounds of durations in seconds; one more bucket is without a bound. */
export const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
export const boundsMs: readonly number[] = buckets.map(seconds => seconds * 1000)

/** Of one route. */
export interface RouteCounts {
  readonly requests: number
  /** Responses with a status of 500 or more. */
  readonly errors: number
  /** Responses with a status from 400 to 499. */
  readonly refused: number
  /** One for each of `boundsMs`, and the rest. */
  readonly buckets: ArrayLike<number>
}

export class RouteTotals implements RouteCounts {
  requests = 0
  errors = 0
  refused = 0
  readonly buckets = new Uint32Array(boundsMs.length + 1)

  count(ms: number, status: number): void {
    this.requests++
    if (status >= 500) this.errors++
    else if (status >= 400) this.refused++
    let index = 0
    while (index < boundsMs.length && ms > (boundsMs[index] as number)) index++
    ;(this.buckets[index] as number)++
  }

  since(before?: RouteCounts): RouteCounts {
    return {
      requests: this.requests - (before?.requests ?? 0),
      errors: this.errors - (before?.errors ?? 0),
      refused: this.refused - (before?.refused ?? 0),
      buckets: this.buckets.map((count, index) => count - (before?.buckets[index] ?? 0))
    }
  }
}

/** Of all generations. */
export class RequestRates {
  readonly #routes = new Map<string, RouteTotals>()
  inFlight = 0

  ofRoute(name: string): RouteTotals {
    let totals = this.#routes.get(name)
    if (totals === undefined) this.#routes.set(name, (totals = new RouteTotals()))
    return totals
  }

  /** By route, since it was read `before`; without that since the start. */
  read(before?: ReadonlyMap<string, RouteCounts>): Map<string, RouteCounts> {
    const routes = Array.from(this.#routes)
    return new Map(routes.map(([route, totals]) => [route, totals.since(before?.get(route))]))
  }
}
