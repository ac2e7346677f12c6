import { schemaOf } from './config.ts'
import { usersSchema } from './users.ts'
import { asNode, type Node } from './node.ts'

export const fileSchemas: ReadonlyArray<readonly [name: string, schema: Node]> = [
  ...Object.entries(schemaOf),
  ['users', asNode(usersSchema)]
]

/** JSON Schema for editors: keys with a default are optional, our own keywords are left out. */
export function schemaTexts(): Array<readonly [name: string, text: string]> {
  return fileSchemas.map(([name, schema]) => {
    const definitions: Definitions = {}
    const written = {
      $schema: 'http://json-schema.org/draft-07/schema#',
      $id: `${name}.schema.json`,
      title: `${name}.yaml`,
      ...forEditors(schema, definitions),
      ...(Object.keys(definitions).length > 0 && { definitions })
    }
    return [name, `${JSON.stringify(written, null, 2)}\n`] as const
  })
}

type Definitions = Record<string, object>

function forEditors(schema: Node, definitions: Definitions): object {
  const { recursive, ...plain } = schema
  if (recursive === undefined) return plainForEditors(plain, definitions)
  if (definitions[recursive] === undefined) {
    definitions[recursive] = {}
    definitions[recursive] = plainForEditors(plain, definitions)
  }
  return { $ref: `#/definitions/${recursive}` }
}

const textWithReference = { type: 'string', pattern: '\\$\\{[A-Za-z_]' }

const ownKeywords = new Set([
  'expected',
  'restart',
  'names',
  'keysName',
  'keysExpected',
  'chosenBy'
])

function plainForEditors(schema: Node, definitions: Definitions): object {
  const { format, pattern, enum: values, minimum, maximum, required, ...others } = schema
  const { type = '', properties, patternProperties, items, anyOf } = others
  const all = (members: Readonly<Record<string, Node>>) =>
    Object.fromEntries(
      Object.entries(members).map(([key, member]) => [key, forEditors(member, definitions)])
    )
  const needed = required?.filter(key => properties?.[key]?.default === undefined) ?? []
  const plain = Object.entries(others).filter(([keyword]) => !ownKeywords.has(keyword))
  return {
    ...Object.fromEntries(plain),
    // A duration or size is no number in the file: its pattern refuses 0 where its bounds do.
    ...(format === undefined && minimum !== undefined && { minimum }),
    ...(format === undefined && maximum !== undefined && { maximum }),
    // Instead of any value, config may hold a reference such as ${NAME}.
    ...(['integer', 'number', 'boolean'].includes(type) && { type: [type, 'string'] }),
    ...((pattern ?? values) &&
      format !== 'x-secret' && { anyOf: [{ pattern, enum: values }, textWithReference] }),
    ...(properties && { properties: all(properties) }),
    ...(patternProperties && {
      patternProperties: all(patternProperties),
      additionalProperties: false
    }),
    ...(items && { items: forEditors(items, definitions) }),
    ...(anyOf && { anyOf: anyOf.map(branch => forEditors(branch, definitions)) }),
    ...(needed.length > 0 && { required: needed })
  }
}
