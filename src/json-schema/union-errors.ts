/** The errors of a validation without those of the branches that a union does not mean. */
import type { ErrorObject } from 'ajv/dist/2020.js'

/** A failed union of a value. */
interface Union {
  readonly schemaPath: string
  /** Only one branch takes the value's type. */
  readonly isDecided: boolean
}

/**
 * A failed union reports an error for each branch. Kept are the errors of the only branch that
 * takes the value's type, else the one of the union. The time is linear: all rows of a list may
 * fail.
 */
export function relevantErrors(errors: readonly ErrorObject[]): ErrorObject[] {
  const unions = unionsByPlace(errors)
  const decided = new Map<string, boolean>([['', true]])
  /** Whether each union around a place has decided on a branch. */
  const isBelowDecided = (place: string): boolean => {
    const cached = decided.get(place)
    if (cached !== undefined) return cached
    const parent = place.slice(0, place.lastIndexOf('/'))
    const result =
      (unions.get(parent) ?? []).every(({ isDecided }) => isDecided) && isBelowDecided(parent)
    decided.set(place, result)
    return result
  }
  return errors.filter(error => {
    const { instancePath: place, keyword } = error
    return (
      keyword !== 'if' &&
      (unions.get(place) ?? []).every(union => isOutside(error, union)) &&
      isBelowDecided(place)
    )
  })
}

/** Each union once, though it may have failed for several names of one object. */
function unionsByPlace(errors: readonly ErrorObject[]): ReadonlyMap<string, readonly Union[]> {
  const refusedTypes = new Map<string, number>()
  for (const { keyword, instancePath } of errors) {
    if (keyword !== 'type') continue
    refusedTypes.set(instancePath, (refusedTypes.get(instancePath) ?? 0) + 1)
  }
  const unions = new Map<string, Union[]>()
  for (const { keyword, instancePath, schemaPath, schema } of errors) {
    if (keyword !== 'anyOf' && keyword !== 'oneOf') continue
    const atPlace = unions.get(instancePath) ?? []
    if (atPlace.some(union => union.schemaPath === schemaPath)) continue
    const branches = Array.isArray(schema) ? schema.length : 0
    const isDecided = branches - (refusedTypes.get(instancePath) ?? 0) === 1
    unions.set(instancePath, [...atPlace, { schemaPath, isDecided }])
  }
  return unions
}

/** Whether an error of the same value is none of a branch that the union does not mean. */
function isOutside(error: ErrorObject, union: Union): boolean {
  if (error.schemaPath === union.schemaPath) return !union.isDecided
  return (
    !isUnnamedMember(error) &&
    error.keyword !== 'type' &&
    (union.isDecided || !isWithin(error, union))
  )
}

function isUnnamedMember({ keyword }: ErrorObject) {
  return keyword === 'additionalProperties' || keyword === 'unevaluatedProperties'
}

/**
 * A reference starts a new schema path, so an error whose path begins elsewhere counts as within.
 */
function isWithin(error: ErrorObject, union: Union) {
  return (
    error.schemaPath.startsWith(union.schemaPath) ||
    !error.schemaPath.startsWith(union.schemaPath.slice(0, union.schemaPath.lastIndexOf('/') + 1))
  )
}
