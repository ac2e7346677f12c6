/** `parts` of a route or of the profile: calls to other upstreams, added to the response. */
import { Type, type Static } from 'typebox'
import * as s from './primitives.ts'

const part = s.closed(
  {
    upstream: s.name(
      'An upstream of this file. It gets the identity, as from a route of its own.',
      {
        names: 'upstream'
      }
    ),
    rewrite: s.pathTemplate(
      'The path at the upstream, called with GET. `/*` at its end and `:name` are what they ' +
        'matched in the route’s `path`.',
      { format: 'x-upstream-path' }
    ),
    shape: s.may.name('A shape of this file, for this part only.', { names: 'shape' }),
    into: s.may.dotted(
      'Where to put the value in the response, before the route’s own shape. Default: the ' +
        'part’s members are added to the response.'
    ),
    required: s.flag(
      'Whether the request fails with the error of this part. `false`: the response leaves the ' +
        'part out, and lists its name under `missing`.',
      { default: true }
    ),
    default: s.maybe(
      Type.Unknown({
        description: 'The value to use if the part is missing or null.',
        examples: [0]
      })
    )
  },
  'A call to another upstream.'
)

const description =
  'Calls to other upstreams whose results are added to the response, by name. All are called at once.'

export const partsSchema = s.named(part, description)

/** The same where nothing else answers. */
export const neededParts = s.named(part, description, { default: undefined, minProperties: 1 })

export type PartConfig = Static<typeof part>
