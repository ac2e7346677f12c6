/** `contract` of a route: a JSON Schema of its responses, and how they are checked. */
import { Type, type Static } from 'typebox'
import { maybe, oneOf, pairs, text } from './primitives.ts'

export const contractSchema = Type.Object(
  {
    schema: maybe(
      pairs(
        Type.Unknown(),
        'A JSON Schema (2020-12) of the response. With the envelope, it describes what is ' +
          'under `data`; without it, the whole response.',
        { examples: [{ type: 'array', items: { type: 'object', required: ['id'] } }] }
      )
    ),
    file: maybe(
      text(
        'A JSON or YAML file with that JSON Schema. A relative path starts at the config ' +
          'folder.',
        { names: 'contract file', examples: ['contracts/notices.schema.json'] }
      )
    ),
    mode: oneOf(
      ['observe', 'strict', 'off'],
      '`observe`: one response a second at most is checked, after it was sent; differences are ' +
        'counted, and logged when they begin and end. `strict`: in addition, a response that ' +
        'breaks the schema is replaced by 502 `contract.broken`. `off`: nothing is checked.',
      { default: 'observe' }
    )
  },
  {
    additionalProperties: false,
    description: 'The contract of the route: what the console expects in its responses.'
  }
)

export type ContractConfig = Static<typeof contractSchema>

/** The content of a schema file: any mapping. */
export const schemaFile = pairs(Type.Unknown(), 'A JSON Schema.')
