/** The errors of a validation without unevaluated members that the schema names. */
import type { ErrorObject } from 'ajv/dist/2020.js'
import { isRecord, type JsonSchema, namesMember } from './closed-schema.ts'

/**
 * Where a schema that refers to itself, or a condition, fails for one difference, no member that it
 * names is evaluated, and neither are those of the objects around. Left out are such errors, if
 * the value or one in it has another one.
 */
export function withoutNamedMembers(
  errors: readonly ErrorObject[],
  root: JsonSchema
): ErrorObject[] {
  const isNamed = namedMembers(root)
  const [named, others] = [errors.filter(isNamed), errors.filter(error => !isNamed(error))]
  if (named.length === 0) return others
  const deviating = placesAround(others)
  return errors.filter(error => !isNamed(error) || !deviating.has(error.instancePath))
}

/** Remembers each schema's answers: all rows of a list have the same ones. */
function namedMembers(root: JsonSchema): (error: ErrorObject) => boolean {
  const answers = new Map<unknown, Map<unknown, boolean>>()
  return ({ keyword, params, parentSchema }) => {
    const name: unknown = params['unevaluatedProperty']
    if (keyword !== 'unevaluatedProperties' || typeof name !== 'string') return false
    if (!isRecord(parentSchema)) return false
    const ofSchema = answers.get(parentSchema) ?? new Map<unknown, boolean>()
    answers.set(parentSchema, ofSchema)
    const answer = ofSchema.get(name) ?? namesMember(parentSchema, root, name)
    ofSchema.set(name, answer)
    return answer
  }
}

/** The values with an error, and those around them. */
function placesAround(errors: readonly ErrorObject[]): ReadonlySet<string> {
  const places = new Set<string>()
  for (const { instancePath } of errors) {
    let place = instancePath
    while (!places.has(place)) {
      places.add(place)
      place = place.slice(0, Math.max(0, place.lastIndexOf('/')))
    }
  }
  return places
}
