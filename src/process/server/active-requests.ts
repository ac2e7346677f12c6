/** Who is there at the moment, where many come and go: a list whose places are filled again. */

export interface Roster<T> {
  /** @returns what to call, once, when it leaves */
  readonly enter: (member: T) => () => void
  readonly size: () => number
  readonly present: () => T[]
}

/**
 * A Set would do the same, but keeps what left it in memory: when it is full it moves to another table, and the old
 * ones, each of which points to the next, hold on to all their members until the next full garbage collection.
 */
export function createRoster<T>(): Roster<T> {
  const places: Array<{ readonly member: T; at: number }> = []
  return {
    enter: member => {
      const place = { member, at: places.length }
      places.push(place)
      return () => {
        const last = places.pop()
        if (last === undefined || last === place) return
        last.at = place.at
        places[place.at] = last
      }
    },
    size: () => places.length,
    present: () => places.map(({ member }) => member)
  }
}
