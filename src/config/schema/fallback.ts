/** `fallback` of a route: the fixed response in an outage of its upstream. */
import { Type, type Static } from 'typebox'
import { closed, maybe, whole } from './primitives.ts'

const fallback = closed(
  {
    body: Type.Unknown({ description: 'Answer with this JSON, without a shape or envelope.' }),
    status: whole('The status of the fixed response.', { minimum: 200, maximum: 599, default: 200 })
  },
  'What a GET request gets if the upstream cannot be reached, breaks the connection, takes ' +
    'too long, or answers 502, 503 or 504. Default: the error.',
  { examples: [{ body: { data: [] } }] }
)

export const fallbackSchema = maybe(fallback)

export type FallbackConfig = Static<typeof fallback>
