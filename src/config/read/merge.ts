/** Merges presets and the files of a folder into one tree. */
import { isRecord, type JsonRecord } from '../../json/values.ts'
import { placesOf, withPlaces } from './yaml-values.ts'

/**
 * The later wins: mappings merge key by key, everything else is replaced; only items of
 * `login.sources` inherit from the item of the same name. `null` removes a key.
 */
export function mergeMappings(base: JsonRecord, over: JsonRecord): JsonRecord {
  const members = new Map(Object.entries(base))
  const places = new Map(placesOf(base))
  for (const [key, place] of placesOf(over)) {
    const value = over[key]
    if (value === null && members.has(key)) {
      // A key with nothing after it changes nothing.
      if (place.isNull) {
        members.delete(key)
        places.delete(key)
      }
      continue
    }
    members.set(key, mergeValues(key, members.get(key), value))
    places.set(key, place)
  }
  return withPlaces(Object.fromEntries(members), places)
}

function mergeValues(key: string, base: unknown, over: unknown): unknown {
  if (isRecord(base) && isRecord(over)) return mergeMappings(base, over)
  if (key !== 'sources' || !Array.isArray(base) || !Array.isArray(over)) return over
  const items = over.map((item: unknown) => {
    const inherited: unknown = base.find(other => isSameSource(other, item))
    return isRecord(inherited) && isRecord(item) ? mergeMappings(inherited, item) : item
  })
  return withPlaces(items, placesOf(over))
}

function isSameSource(base: unknown, over: unknown): boolean {
  if (!isRecord(base) || !isRecord(over)) return false
  const { name, kind = base['kind'] } = over
  return typeof name === 'string' && name === base['name'] && kind === base['kind']
}
