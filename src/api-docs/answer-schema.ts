/** The schema of an answer that config writes: the types of its members, in their place. */
import {
  type AnswerConfig,
  placeholderOf,
  sessionNameOf,
  sessionNames
} from '../config/schema/answer.ts'
import { isSchema as isRecord, type JsonSchema } from '../contract/schema.ts'

const typesOfNames: Readonly<Record<(typeof sessionNames)[keyof typeof sessionNames], JsonSchema>> =
  {
    text: { type: 'string' },
    texts: { type: 'array', items: { type: 'string' } },
    number: { type: 'integer' },
    object: { type: 'object' }
  }

export function valueSchema({ json = null, byRole = {} }: AnswerConfig): JsonSchema {
  return anyOf([json, ...Object.values(byRole)].map(templateSchema))
}

function templateSchema(json: unknown): JsonSchema {
  if (json === null) return { type: 'null' }
  if (Array.isArray(json)) {
    return json.length === 0
      ? { type: 'array' }
      : { type: 'array', items: anyOf(json.map(templateSchema)) }
  }
  if (isRecord(json) && !isRawNumber(json)) {
    const properties = Object.fromEntries(
      Object.entries(json).map(([name, member]) => [name, templateSchema(member)])
    )
    return { type: 'object', properties, required: Object.keys(json) }
  }
  const placeholder = placeholderOf(json)
  const reference = placeholder === undefined ? undefined : sessionNameOf(placeholder)
  if (reference !== undefined) {
    return reference.path.length > 0 ? {} : typesOfNames[sessionNames[reference.name]]
  }
  if (typeof json === 'string' || typeof json === 'boolean') return { type: typeof json }
  return { type: 'number' }
}

/** A number that a double cannot hold; `JSON.rawJSON` makes it an object. */
function isRawNumber(value: Record<string, unknown>): boolean {
  return Object.isFrozen(value) && Object.getPrototypeOf(value) === null && 'rawJSON' in value
}

/** Equal schemas are listed once. */
function anyOf(schemas: readonly JsonSchema[]): JsonSchema {
  const distinct = [...new Map(schemas.map(each => [JSON.stringify(each), each])).values()]
  const [only, ...others] = distinct
  return only !== undefined && others.length === 0 ? only : { anyOf: distinct }
}
