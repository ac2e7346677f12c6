/** Merges presets and the files of a folder into one tree. */
import { isRecord, type JsonRecord } from '../../json/values.ts'
import { placesOf, withPlaces } from './yaml-values.ts'

/**
 * The later wins: mappings merge key by key, everything else is replaced. The keys stand in its
 * order, before those that it does not have. `null` removes a key.
 */
export function mergeMappings(base: JsonRecord, over: JsonRecord): JsonRecord {
  const inherited = new Map(Object.entries(base))
  const members = new Map<string, unknown>()
  const places = new Map(placesOf(base))
  for (const [key, place] of placesOf(over)) {
    const value = over[key]
    const former = inherited.get(key)
    const isEmpty = value === null && inherited.delete(key)
    if (isEmpty && place.isNull) {
      places.delete(key)
    } else if (isEmpty) {
      // A key with nothing after it changes nothing.
      members.set(key, former)
    } else {
      const areBoth = isRecord(former) && isRecord(value)
      members.set(key, areBoth ? mergeMappings(former, value) : value)
      places.set(key, place)
      inherited.delete(key)
    }
  }
  return withPlaces(Object.fromEntries([...members, ...inherited]), places)
}
