import { Type, type Static } from 'typebox'
import * as s from './primitives.ts'

const contract = s.closed('What the console expects in the responses.', {
  file: s.text('A JSON Schema of `data`, or of the response.', { names: 'contract file' }),
  mode: s.choice('Differences are logged, or are 502 `contract.broken`.', ['observe', 'strict'])
})

export type ContractConfig = Static<typeof contract>

export const schemaFile = s.pairs('A JSON Schema.', Type.Unknown())

export const proxied = {
  upstream: s.upstreamName('An upstream of this file.'),
  rewrite: s.may.upstreamPathTemplate(
    'Its path there; `*`, `:name` as in `path`. Default: `path`.'
  ),
  timeout: s.may.duration('How long the response may be silent. Default: as the upstream says.'),
  shape: s.may.shapeName('A shape of this file. Default: the response passes unchanged.'),
  contract: s.maybe(contract)
}

const part = s.closed('A call to another upstream.', {
  upstream: s.upstreamName('An upstream of this file. It gets the identity, too.'),
  rewrite: s.upstreamPathTemplate('The path there (GET); `*` and `:name` as in `path`.'),
  shape: s.may.shapeName('A shape of this file, for this part only.'),
  into: s.may.dotted('Where its value goes, before the route’s shape. Default: all are added.'),
  required: s.flag('Whether the request fails with it. Else it is named in `missing`.', {
    default: true
  }),
  default: s.may.anything('The value to use if the part is missing or null.')
})

const description = 'Calls to other upstreams, all at once, whose results are added.'

export const partsSchema = s.named(description, part)

/** The same where nothing else answers. */
export const neededParts = s.named(description, part, { default: undefined, minProperties: 1 })

export type PartConfig = Static<typeof part>
