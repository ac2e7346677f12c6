/** `parts` of a route or of the profile: calls to other upstreams, added to the response. */
import { Type, type Static } from 'typebox'
import { dotted, duration, flag, maybe, name, named, pathTemplate, text } from './primitives.ts'

const part = Type.Object(
  {
    upstream: name(
      'An upstream of this file. It gets the identity headers as on a route of its own.',
      { names: 'upstream' }
    ),
    rewrite: pathTemplate(
      'The path at the upstream, called with GET. With `/*` at its end it keeps what the `*` ' +
        'of the route’s `path` matched; `:name` works likewise.',
      { format: 'x-upstream-path', examples: ['/notices/unread'] }
    ),
    query: flag(
      'Send the request’s query to this part, too, after `query.drop` and `query.set` of the ' +
        'route.',
      { default: false }
    ),
    timeout: maybe(
      duration('How long the whole response may take. Default: the upstream’s `responseTimeout`.', {
        examples: ['500ms']
      })
    ),
    shape: maybe(name('A shape of this file, for this part only.', { names: 'shape' })),
    unwrap: maybe(
      dotted(
        'Use only the value at this path of the part’s response, after its shape. Default: ' +
          'the whole response.',
        { examples: ['result.count'] }
      )
    ),
    into: maybe(
      dotted(
        'Where to put the value in the response, before the route’s own shape. Missing ' +
          'objects on the path are created. Default: the part’s members are added to the ' +
          'response.',
        { examples: ['unreadCount'] }
      )
    ),
    required: flag(
      '`true`: if this part fails, the request fails with its error. `false`: the response ' +
        'leaves the part out and lists its name under `missing`.',
      { default: true }
    ),
    default: maybe(
      Type.Unknown({
        description: 'The value to use if the part is missing or null.',
        examples: [0]
      })
    )
  },
  {
    additionalProperties: false,
    description:
      'A call to another upstream whose result is added to the response. All parts are called ' +
      'at the same time.'
  }
)

export const partsSchema = named(
  part,
  'Calls to other upstreams whose results are added to the response, by name.'
)
export const missingSchema = text(
  'The member, next to `data` in the envelope, that lists the names of missing parts. It is ' +
    'absent if none is missing.',
  { default: 'missing' }
)

export type PartConfig = Static<typeof part>
