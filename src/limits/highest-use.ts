/** The highest use of each limit in this process, by the hour: numbers for those who set limits. */

export interface Use {
  readonly used: number
  /** As people name the caller. */
  readonly caller: string
}

export interface LimitUse {
  readonly hour: Use | undefined
  /** Of the last 24 hours. */
  readonly day: Use | undefined
  /** Callers that were over the limit in this hour, the last one first. */
  readonly over: readonly string[]
  /** Those of this hour that came nearest to it, the nearest first. */
  readonly nearest: readonly Use[]
}

interface Hour {
  readonly number: number
  readonly nearest: Map<string, number>
  readonly over: Set<string>
}

const hourMs = 3_600_000
const hoursKept = 24
/** Of each limit, in each hour. */
const callersKept = 20

export class HighestUse {
  /** By limit, the current hour last. */
  readonly #hours = new Map<string, Hour[]>()
  readonly #now: () => number

  constructor(now: () => number = Date.now) {
    this.#now = now
  }

  /** @param used of the bucket, with this request */
  note(limit: string, caller: string, used: number, exceeded: boolean): void {
    const { nearest, over } = this.#hour(limit)
    if (exceeded) {
      over.delete(caller)
      over.add(caller)
      if (over.size > callersKept) over.delete(over.values().next().value as string)
    }
    const before = nearest.get(caller)
    if (before !== undefined && before >= used) return
    if (before === undefined && nearest.size >= callersKept) {
      const [least, leastUsed] = [...nearest].reduce((low, each) => (each[1] < low[1] ? each : low))
      if (leastUsed >= used) return
      nearest.delete(least)
    }
    nearest.set(caller, used)
  }

  read(limit: string): LimitUse {
    const current = Math.floor(this.#now() / hourMs)
    const hours = (this.#hours.get(limit) ?? []).filter(
      ({ number }) => number > current - hoursKept
    )
    const hour = hours.find(({ number }) => number === current)
    const nearest = sorted(hour)
    return {
      hour: nearest[0],
      day: hours.flatMap(each => sorted(each).slice(0, 1)).toSorted((a, b) => b.used - a.used)[0],
      over: [...(hour?.over ?? [])].toReversed(),
      nearest
    }
  }

  /** Of each limit, the highest use of this hour. */
  all(): Array<[limit: string, used: number]> {
    return [...this.#hours.keys()].map(limit => [limit, this.read(limit).hour?.used ?? 0])
  }

  #hour(limit: string): Hour {
    const number = Math.floor(this.#now() / hourMs)
    let hours = this.#hours.get(limit)
    if (hours === undefined) this.#hours.set(limit, (hours = []))
    const last = hours.at(-1)
    if (last?.number === number) return last
    const hour: Hour = { number, nearest: new Map(), over: new Set() }
    hours.push(hour)
    if (hours.length > hoursKept) hours.shift()
    return hour
  }
}

function sorted(hour: Hour | undefined): Use[] {
  return [...(hour?.nearest ?? [])]
    .map(([caller, used]) => ({ caller, used }))
    .toSorted((a, b) => b.used - a.used)
}
