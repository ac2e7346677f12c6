/** The addresses of an upstream: which there are, and when one is left out. */
import { Type } from 'typebox'
import { duration, list, maybe, optional, url } from './primitives.ts'

const health = optional(
  {
    path: Type.String({
      pattern: '^/[^\\s?#]*$',
      expected: 'a path that begins with /, such as /healthz',
      description: 'What is asked by GET. It is the whole path: that of the URL is not put before.',
      examples: ['/healthz']
    }),
    interval: duration('The pause between two checks.', { default: '5s' })
  },
  'Checks of each address by the gateway itself, besides what becomes of requests. One that gives ' +
    'no 2xx within two seconds, twice in a row, gets no requests until it does. Off without it.'
)

export const addresses = {
  url: maybe(
    url(
      'The URL of the back-end. If it has a path, this path comes before every upstream path. ' +
        'Use either this or `urls`.',
      { examples: ['http://orders.internal:8080'] }
    )
  ),
  urls: maybe(
    list(
      url('An address.'),
      'Several addresses that answer alike, with the same path: each request goes to the one ' +
        'with the fewest requests in flight.',
      {
        minItems: 1,
        maxItems: 100,
        examples: [['http://orders-1.internal:8080', 'http://orders-2.internal:8080']]
      }
    )
  ),
  health
}

interface Addressed {
  readonly url?: string
  readonly urls?: readonly string[]
}

/** The addresses of an upstream, as config names them. */
export function urlsOf({ url: only, urls = [] }: Addressed): readonly string[] {
  return only === undefined ? urls : [only]
}

/** An upstream's address in texts for people, and for what needs any of them. */
export function firstUrlOf(upstreamConfig: Addressed): string {
  return urlsOf(upstreamConfig)[0] ?? ''
}
