/** Keys of a route with which one response of the upstream serves several requests. */
import { Type, type Static } from 'typebox'
import { closed, duration, flag, oneOf, size, whole } from './primitives.ts'

const fixedBody = (description: string) => Type.Unknown({ description })

const fallback = closed(
  {
    lastGood: flag({
      default: false,
      description:
        'Answer with the last good response to the same request of the same session. Responses ' +
        'with `Cache-Control: no-store`, `no-cache` or `must-revalidate` are not used.'
    }),
    maxAge: duration({
      default: '1h',
      description: 'How old the last good response may be.'
    }),
    body: Type.Optional(
      fixedBody(
        'Answer with this JSON, without a shape or envelope. With `lastGood`: if there is no ' +
          'last good response.'
      )
    ),
    byRole: Type.Optional(
      Type.Record(Type.String({ minLength: 1 }), fixedBody('In the place of `body`.'), {
        description: 'Other bodies by role. The first role here that the user has decides.',
        examples: [{ admin: { data: [], total: 0 } }]
      })
    ),
    status: whole({
      minimum: 200,
      maximum: 599,
      default: 200,
      description: 'The status of the fixed response.'
    })
  },
  {
    description:
      'What a GET request gets if the upstream cannot be reached, breaks the connection, takes ' +
      'too long, or answers 502, 503 or 504. Default: the error.',
    examples: [{ lastGood: true }, { body: { data: [] } }]
  }
)

export type FallbackConfig = Static<typeof fallback>

export const copies = {
  doubleClicks: oneOf(['run', 'share'], {
    default: 'run',
    description:
      'What happens to a request that changes something while an identical one of the same ' +
      'session (method, path, query, body, headers) is running. `run`: it runs too. `share`: it ' +
      'waits for the response to the first one and gets the same. Bodies above 1 MiB always run.'
  }),
  coalesce: flag({
    default: false,
    description:
      'Send identical GET requests that one session makes at the same time to the upstream only ' +
      'once. Responses above 1 MiB, event streams and responses that set cookies are not shared.'
  }),
  cache: oneOf(['off', 'private'], {
    default: 'off',
    description:
      '`private`: keep responses to GET for the session that got them, as long as their ' +
      '`Cache-Control` or `Expires` say (RFC 9111), and validate them by `ETag` or ' +
      '`Last-Modified`.'
  }),
  cacheMaxAge: duration({
    default: '5m',
    minimum: 0,
    description:
      'With `cache: private`: how long a response is used at most without asking. `0s`: the ' +
      'upstream is always asked.'
  }),
  fallback: Type.Optional(fallback)
}

/** `copies` of `limits.yaml`. */
export const copyBounds = Type.Object(
  {
    maxEntries: whole({
      minimum: 1,
      maximum: 1_000_000,
      default: 10_000,
      description: 'The maximum number of copies in one process. One session has at most 200.'
    }),
    maxBytes: size({
      default: '64MiB',
      description: 'The maximum memory for copies in one process.'
    })
  },
  {
    additionalProperties: false,
    default: {},
    description:
      'Bounds of the responses that routes with `cache` or `fallback` keep. The copies that were ' +
      'not used for the longest time are dropped first. Changed bounds drop all copies.'
  }
)
