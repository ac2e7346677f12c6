/** The numbers and durations of each route's requests, for what operators see of the last seconds. */

/** Upper bounds of durations in seconds; one more bucket is without a bound. */
export const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
export const boundsMs: readonly number[] = buckets.map(seconds => seconds * 1000)

/** Of one route in a period. */
export interface RouteCounts {
  readonly route: string
  readonly requests: number
  /** Responses with a status of 500 or more. */
  readonly errors: number
  /** One for each of `boundsMs`, and the rest. */
  readonly buckets: readonly number[]
}

export class RouteTotals {
  requests = 0
  errors = 0
  readonly buckets = new Uint32Array(boundsMs.length + 1)

  count(ms: number, isError: boolean): void {
    this.requests++
    if (isError) this.errors++
    let index = 0
    while (index < boundsMs.length && ms > (boundsMs[index] as number)) index++
    ;(this.buckets[index] as number)++
  }
}

/** At one moment; numbers only rise. */
export type Totals = ReadonlyMap<string, Omit<RouteCounts, 'route'>>

/** Of all generations. */
export class RequestRates {
  readonly #routes = new Map<string, RouteTotals>()
  inFlight = 0

  ofRoute(name: string): RouteTotals {
    let totals = this.#routes.get(name)
    if (totals === undefined) this.#routes.set(name, (totals = new RouteTotals()))
    return totals
  }

  read(): Totals {
    return new Map(
      Array.from(this.#routes, ([route, { requests, errors, buckets: counts }]) => [
        route,
        { requests, errors, buckets: [...counts] }
      ])
    )
  }

  /** Of the routes that had requests since `before`. */
  since(before: Totals): RouteCounts[] {
    return Array.from(this.#routes, ([route, now]) => {
      const then = before.get(route)
      return {
        route,
        requests: now.requests - (then?.requests ?? 0),
        errors: now.errors - (then?.errors ?? 0),
        buckets: Array.from(now.buckets, (count, index) => count - (then?.buckets[index] ?? 0))
      }
    }).filter(({ requests }) => requests > 0)
  }
}
