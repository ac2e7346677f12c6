/** The keys that routes and the profile endpoint of `routes.yaml` share. */
import { Type, type Static } from 'typebox'
import * as s from './primitives.ts'

const contract = s.closed(
  {
    file: s.text(
      'A JSON or YAML file with a JSON Schema (2020-12) of what is under `data`; without an ' +
        'envelope, of the whole response.',
      { names: 'contract file' }
    ),
    mode: s.oneOf(
      ['observe', 'strict', 'off'],
      '`observe`: differences are counted and logged; one response a second at most is checked. ' +
        '`strict`: a response that breaks the schema is also replaced by 502 `contract.broken`.',
      { default: 'observe' }
    )
  },
  'What the console expects in the responses.'
)

export type ContractConfig = Static<typeof contract>

/** The content of a schema file: any mapping. */
export const schemaFile = s.pairs(Type.Unknown(), 'A JSON Schema.')

export const proxied = {
  upstream: s.name('An upstream of this file.', { names: 'upstream' }),
  rewrite: s.may.pathTemplate(
    'The path at the upstream: `*` and `:name` are what those of `path` took. Default: the ' +
      'public path.',
    { format: 'x-upstream-path' }
  ),
  timeout: s.may.duration(
    'How long the response may be silent. Default: `responseTimeout` of the upstream.'
  ),
  shape: s.may.name('A shape of this file. Default: the response passes unchanged.', {
    names: 'shape'
  }),
  contract: s.maybe(contract)
}
