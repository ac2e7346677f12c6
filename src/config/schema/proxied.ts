import { Type, type Static } from 'typebox'
import * as s from './primitives.ts'

const contract = s.closed(
  {
    file: s.text('A JSON Schema of `data`, or of the response.', { names: 'contract file' }),
    mode: s.oneOf(
      ['observe', 'strict', 'off'],
      '`observe`: differences are counted and logged. `strict`: they are 502 `contract.broken`.',
      { default: 'observe' }
    )
  },
  'What the console expects in the responses.'
)

export type ContractConfig = Static<typeof contract>

export const schemaFile = s.pairs(Type.Unknown(), 'A JSON Schema.')

export const proxied = {
  upstream: s.upstreamName('An upstream of this file.'),
  rewrite: s.may.upstreamPathTemplate(
    'The path at the upstream; `*` and `:name` as in `path`. Default: the public path.'
  ),
  timeout: s.may.duration('How long the response may be silent. Default: as the upstream says.'),
  shape: s.may.shapeName('A shape of this file. Default: the response passes unchanged.'),
  contract: s.maybe(contract)
}

const part = s.closed(
  {
    upstream: s.upstreamName('An upstream of this file. It gets the identity, too.'),
    rewrite: s.upstreamPathTemplate(
      'The path at the upstream, called with GET; `*` and `:name` as in `path`.'
    ),
    shape: s.may.shapeName('A shape of this file, for this part only.'),
    into: s.may.dotted('Where its value goes, before the route’s shape. Default: all are added.'),
    required: s.flag(
      'Whether the request fails with it. `false`: it is left out, and named in `missing`.',
      { default: true }
    ),
    default: s.may.anything('The value to use if the part is missing or null.')
  },
  'A call to another upstream.'
)

const description =
  'Calls to other upstreams, all at once, whose results are added to the response.'

export const partsSchema = s.named(part, description)

/** The same where nothing else answers. */
export const neededParts = s.named(part, description, { default: undefined, minProperties: 1 })

export type PartConfig = Static<typeof part>
