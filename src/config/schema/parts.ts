/** `parts` of a route or of the profile: calls to other upstreams, added to the response. */
import { Type, type Static } from 'typebox'
import * as s from './primitives.ts'

const part = s.closed(
  {
    upstream: s.upstreamName(
      'An upstream of this file. It gets the identity, as from a route of its own.'
    ),
    rewrite: s.pathTemplate(
      'The path at the upstream, called with GET; `*` and `:name` as in `path`.',
      { format: 'x-upstream-path' }
    ),
    shape: s.may.shapeName('A shape of this file, for this part only.'),
    into: s.may.dotted(
      'Where to put the value, before the route’s own shape. Default: its members are added ' +
        'to the response.'
    ),
    required: s.flag(
      'Whether the request fails with this part. `false`: it is left out, and `missing` ' +
        'lists its name.',
      { default: true }
    ),
    default: s.maybe(
      Type.Unknown({ description: 'The value to use if the part is missing or null.' })
    )
  },
  'A call to another upstream.'
)

const description =
  'Calls to other upstreams, all at once, whose results are added to the response.'

export const partsSchema = s.named(part, description)

/** The same where nothing else answers. */
export const neededParts = s.named(part, description, { default: undefined, minProperties: 1 })

export type PartConfig = Static<typeof part>
