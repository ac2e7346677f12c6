/** The highest use of each limit in this process, by the hour: numbers for those who set limits. */

export interface Use {
  readonly used: number
  readonly caller: string
}

interface Hour {
  readonly number: number
  /** The nearest to the limit first. */
  nearest: readonly Use[]
  /** Callers that were over it, the last first. */
  over: readonly string[]
}

const hourMs = 3_600_000
const hoursKept = 24
const callersKept = 20

const byUse = (a: Use, b: Use) => b.used - a.used

export class HighestUse {
  readonly #hours = new Map<string, readonly Hour[]>()

  /** @param used of the bucket, with this request */
  note(limit: string, caller: string, used: number, exceeded: boolean): void {
    const hour = this.#hour(limit)
    if (exceeded) {
      const others = hour.over.filter(each => each !== caller)
      hour.over = [caller, ...others].slice(0, callersKept)
    }
    const { nearest } = hour
    const highest = nearest.find(each => each.caller === caller) ?? nearest[callersKept - 1]
    if (highest !== undefined && used <= highest.used) return
    const others = nearest.filter(each => each.caller !== caller)
    hour.nearest = [...others, { used, caller }].toSorted(byUse).slice(0, callersKept)
  }

  read(limit: string) {
    const { nearest, over } = this.#hour(limit)
    const highest = (this.#hours.get(limit) ?? []).flatMap(hour => hour.nearest.slice(0, 1))
    return { hour: nearest[0], day: highest.toSorted(byUse)[0], over, nearest }
  }

  all(): Array<[limit: string, used: number]> {
    return [...this.#hours.keys()].map(limit => [limit, this.read(limit).hour?.used ?? 0])
  }

  #hour(limit: string): Hour {
    const number = Math.floor(Date.now() / hourMs)
    const hours = this.#hours.get(limit) ?? []
    const last = hours.at(-1)
    if (last?.number === number) return last
    const hour: Hour = { number, nearest: [], over: [] }
    const recent = hours.filter(each => each.number > number - hoursKept)
    this.#hours.set(limit, [...recent, hour])
    return hour
  }
}
