/**
 * In-flight requests as a swap-remove array. A Set would do the same, but keeps deleted entries
 * alive: when it is full it moves to another table, and the old tables, each of which points to
 * the next, hold on to all their members until the next full garbage collection.
 * perf: signed-in −36 % (−31 to −43; `npm run bench -- --against`, by turns); without it: a Set.
 */
export function createActiveRequests<T>(onEmpty = () => {}) {
  const places: Array<{ readonly member: T; at: number }> = []
  return {
    /** @returns a function to call once when the request has ended */
    enter: (member: T) => {
      const place = { member, at: places.length }
      places.push(place)
      return (): void => {
        const last = places.pop()
        if (last !== undefined && last !== place) {
          last.at = place.at
          places[place.at] = last
        }
        if (places.length === 0) onEmpty()
      }
    },
    size: () => places.length,
    list: () => places.map(({ member }) => member)
  }
}
