/** The numbers and durations of each route's requests, for what operators see of the last seconds. */

/** Upper bounds of durations in seconds; one more bucket is without a bound. */
export const buckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]
export const boundsMs: readonly number[] = buckets.map(seconds => seconds * 1000)

export class RouteCounts {
  requests = 0
  errors = 0
  refused = 0
  readonly buckets = new Float64Array(boundsMs.length + 1)

  count(ms: number, status: number): void {
    this.requests++
    if (status >= 500) this.errors++
    else if (status >= 400) this.refused++
    let index = 0
    while (index < boundsMs.length && ms > (boundsMs[index] as number)) index++
    ;(this.buckets[index] as number)++
  }

  add({ requests, errors, refused, buckets: counts }: RouteCounts): void {
    this.requests += requests
    this.errors += errors
    this.refused += refused
    for (const [index, count] of counts.entries()) (this.buckets[index] as number) += count
  }
}

export class RequestRates {
  #routes = new Map<string, RouteCounts>()
  inFlight = 0

  ofRoute(name: string): RouteCounts {
    let counts = this.#routes.get(name)
    if (counts === undefined) this.#routes.set(name, (counts = new RouteCounts()))
    return counts
  }

  /** By route, since they were taken last. */
  take(): ReadonlyMap<string, RouteCounts> {
    const taken = this.#routes
    this.#routes = new Map()
    return taken
  }
}
