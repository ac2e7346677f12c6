/** Live config, the `contract` of a route: what the console gets, as a JSON Schema, and who is told where an answer differs. */
import { Type, type Static } from 'typebox'
import { oneOf, pairs, text } from './primitives.ts'

export const contractSchema = Type.Object(
  {
    schema: Type.Optional(
      pairs(Type.Unknown(), {
        description:
          'A JSON Schema (2020-12) of what stands under `data`, where the envelope is put around the answer, and else of the whole answer.',
        examples: [{ type: 'array', items: { type: 'object', required: ['id'] } }]
      })
    ),
    file: Type.Optional(
      text({
        description:
          'A file with that JSON Schema, as JSON or YAML, seen from the config folder. `console-gateway contract learn` and `contract from-type` write one.',
        examples: ['contracts/notices.schema.json']
      })
    ),
    mode: oneOf(['observe', 'strict', 'off'], {
      default: 'observe',
      description:
        '`observe`: some answers are checked, off the request’s path; what differs is counted, and logged when it begins and ends. `strict`: also, an answer that the schema refuses is 502 `contract.broken`.'
    }),
    sample: Type.Number({
      minimum: 0,
      maximum: 1,
      default: 0.1,
      expected: 'a share from 0 to 1, such as 0.1',
      description: 'The share of answers that is observed. A busy gateway observes fewer.'
    })
  },
  { additionalProperties: false, description: 'What the console gets from this route.' }
)

export type ContractConfig = Static<typeof contractSchema>

/** What stands for a schema in a file of its own: any mapping. */
export const schemaFile = pairs(Type.Unknown(), { description: 'A JSON Schema.' })
