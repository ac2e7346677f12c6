/** The addresses of an upstream: which there are, and when one is left out. */
import { Type } from 'typebox'
import { closed, duration, list, oneOf, optional, section, url, whole } from './primitives.ts'

/** One of `urls`. */
export type TargetConfig = string | { readonly url: string; readonly weight: number }

const target = Type.Unsafe<TargetConfig>(
  Type.Union(
    [
      url({ description: 'The address.' }),
      closed(
        {
          url: url({ description: 'The address.' }),
          weight: whole({
            minimum: 1,
            maximum: 100,
            default: 1,
            description: 'Its share of the requests, against the weights of the others.'
          })
        },
        { description: 'An address with a weight.' }
      )
    ],
    {
      expected: 'an http:// or https:// address, or { url: ADDRESS, weight: NUMBER }',
      description: 'An address that answers for this upstream.'
    }
  )
)

const breaker = section(
  {
    failures: whole({
      minimum: 1,
      maximum: 1000,
      default: 5,
      description:
        'Failures in a row after which an address gets no requests for a time: connections that ' +
        'broke before a response, no first byte in time, and the `statuses`. Where there are ' +
        'other addresses, a connection that was refused or timed out counts as all of them; ' +
        'where there are none, nothing else counts.'
    }),
    statuses: list(whole({ minimum: 500, maximum: 599, description: 'A status of a response.' }), {
      default: [502, 503, 504],
      description: 'Statuses that count as failures of the address.'
    }),
    openFor: duration({
      default: '1s',
      description:
        'For how long the first time. It doubles each time that the trial fails; the only ' +
        'address of an upstream is tried again this often.'
    }),
    maxOpenFor: duration({ default: '30s', description: 'For how long at most.' }),
    slowStart: duration({
      default: '10s',
      minimum: 0,
      description:
        'How long an address that works again, or is new beside others, takes to get its full ' +
        'share. `0s`: it has it at once.'
    })
  },
  'When an address of the upstream is left out, and for how long.'
)

export const nameServer = 'an IP address, or IP:PORT such as 127.0.0.1:8600 or [::1]:53'

const dns = section(
  {
    records: oneOf(['lookup', 'a', 'srv'], {
      default: 'lookup',
      description:
        '`lookup` asks the system, which knows `/etc/hosts` and search domains. `a` asks DNS for ' +
        'A and AAAA records and follows their time to live. `srv` asks for SRV records of the ' +
        'name in `url`: they give addresses, ports and weights.'
    }),
    interval: duration({
      default: '10s',
      minimum: 1000,
      description: 'How often `lookup` asks; for the others, how soon after a failure.'
    }),
    servers: list(
      Type.String({
        pattern: '^(\\[[0-9a-fA-F:]+\\]|[0-9.]+)(:[0-9]{1,5})?$',
        expected: nameServer,
        description: 'A name server.'
      }),
      {
        default: [],
        description: 'Name servers for `a` and `srv`; those of the system without it.',
        examples: [['127.0.0.1:8600']]
      }
    )
  },
  'How the name in a URL becomes addresses. All of them get requests, and a move is followed.'
)

const health = optional(
  {
    path: Type.String({
      pattern: '^/[^\\s?#]*$',
      expected: 'a path that begins with /, such as /healthz',
      description: 'What is asked by GET. It is the whole path: that of the URL is not put before.',
      examples: ['/healthz']
    }),
    interval: duration({ default: '5s', description: 'The pause between two checks.' }),
    timeout: duration({ default: '2s', description: 'How long a check may take.' }),
    healthy: whole({
      minimum: 1,
      maximum: 100,
      default: 2,
      description: 'Checks in a row that have to pass before an address gets requests again.'
    }),
    unhealthy: whole({
      minimum: 1,
      maximum: 100,
      default: 3,
      description: 'Checks in a row that have to fail before an address gets no requests.'
    }),
    status: list(whole({ minimum: 200, maximum: 599, description: 'A status.' }), {
      default: [200, 204],
      description: 'Statuses that pass.'
    })
  },
  'Checks of each address by the gateway itself, besides what becomes of requests. ' +
    'Off without it. The only address of an upstream gets requests whatever they find.'
)

export const addresses = {
  url: Type.Optional(
    url({
      description:
        'The URL of the back-end. If it has a path, this path comes before every upstream path. ' +
        'Use either this or `urls`.',
      examples: ['http://orders.internal:8080']
    })
  ),
  urls: Type.Optional(
    list(target, {
      minItems: 1,
      maxItems: 100,
      description:
        'Several addresses that answer alike, with the same path: each request goes to one of ' +
        'them, to the less busy of two random ones.',
      examples: [
        ['http://orders-1.internal:8080', { url: 'http://orders-2.internal:8080', weight: 2 }]
      ]
    })
  ),
  dns,
  breaker,
  health,
  keepAlive: duration({
    default: '4s',
    minimum: 0,
    description:
      'How long a connection is kept without requests; shorter than the back-end keeps it, since ' +
      'a request that meets its closing fails. A `Keep-Alive: timeout` of the back-end counts ' +
      'instead, less two seconds. `0s`: only requests that wait already get it.'
  })
}

interface Addressed {
  readonly url?: string
  readonly urls?: readonly TargetConfig[]
}

export interface Target {
  readonly url: string
  readonly weight: number
}

/** The addresses of an upstream, as config names them. */
export function targetsOf({ url: only, urls = [] }: Addressed): Target[] {
  const written = only === undefined ? urls : [only]
  return written.map(each => (typeof each === 'string' ? { url: each, weight: 1 } : each))
}

/** An upstream's address in texts for people, and for what needs any of them. */
export function firstUrlOf(upstreamConfig: Addressed): string {
  return targetsOf(upstreamConfig)[0]?.url ?? ''
}
