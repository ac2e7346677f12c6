/** `contract` of a route: a JSON Schema of its responses, and how they are checked. */
import { Type, type Static } from 'typebox'
import { closed, oneOf, pairs, text } from './primitives.ts'

export const contractSchema = closed(
  {
    file: text(
      'A JSON or YAML file with a JSON Schema (2020-12) of what is under `data`; without an ' +
        'envelope, of the whole response.',
      { names: 'contract file' }
    ),
    mode: oneOf(
      ['observe', 'strict', 'off'],
      '`observe`: differences are counted and logged; one response a second at most is checked. ' +
        '`strict`: a response that breaks the schema is also replaced by 502 `contract.broken`.',
      { default: 'observe' }
    )
  },
  'What the console expects in the responses.'
)

export type ContractConfig = Static<typeof contractSchema>

/** The content of a schema file: any mapping. */
export const schemaFile = pairs(Type.Unknown(), 'A JSON Schema.')
