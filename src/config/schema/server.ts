/** `server` of `gateway.yaml`: the public listener. */
import { Type } from 'typebox'
import { duration, header, list, listen, origin, path, section, text, whole } from './primitives.ts'

export const server = section(
  {
    listen: listen({
      default: '127.0.0.1:8080',
      description: 'Where the console reaches the gateway.'
    }),
    hosts: list(text({ description: 'A host name, without port.' }), {
      default: [],
      description:
        'The `Host` names that are answered; empty answers any well-formed one. Set it in production: only a listed host is passed on as `X-Forwarded-Host`.',
      examples: [['console.example.com']]
    }),
    ports: list(whole({ minimum: 1, maximum: 65_535, description: 'A port.' }), {
      default: [],
      description:
        'Ports that `X-Forwarded-Host` may tell upstreams, beside that of `server.listen`: ' +
        'the one in the console’s address, where it is another. Clients’ other ports are dropped.',
      examples: [[8443]]
    }),
    origins: list(origin({ description: 'An origin.' }), {
      default: [],
      description:
        'Origins other than our own whose pages may call with credentials (CORS). A page on another *site* also needs `session.cookie.sameSite: none`.',
      examples: [['https://console.example.com']]
    }),
    corsHeaders: list(header({ description: 'A request header.' }), {
      default: [
        'accept',
        'authorization',
        'content-type',
        'x-csrf-token',
        'x-requested-with',
        'x-xsrf-token'
      ],
      description: 'Request headers that a page of `origins` may send.'
    }),
    trustedProxies: list(text({ description: 'An address or CIDR block.' }), {
      default: [],
      description:
        'Addresses of the load balancers in front, whose `X-Forwarded-For` and `-Proto` are believed. Empty believes nobody.',
      examples: [['10.0.0.0/8']]
    }),
    mount: Type.Optional(
      path({
        description: 'A prefix before every public path: `/x` serves `/x/api/…`.',
        examples: ['/admin']
      })
    ),
    headersTimeout: duration({
      default: '10s',
      description: 'How long a client may take to send its header fields.'
    }),
    requestTimeout: duration({
      default: '30s',
      description: 'How long a client may take to send a whole request.'
    }),
    idleTimeout: duration({
      default: '30s',
      format: 'x-duration',
      description:
        'How long a client may take nothing of an answer (a file of the console, or one ' +
        'that is whole) before its connection ends. For streamed ones the upstream’s `idleTimeout` counts.'
    }),
    workers: Type.Union(
      [
        whole({ minimum: 1, maximum: 128, description: 'So many.' }),
        Type.Literal('auto', { description: 'One for each core.' })
      ],
      {
        default: 1,
        expected: 'a whole number from 1 to 128, or auto',
        description:
          'How many processes serve, on one listener; `auto` is one for each core. They share sessions and limits through Redis, so without Redis there is one.',
        examples: ['auto']
      }
    ),
    keepAlive: duration({
      default: '72s',
      description:
        'How long an unused connection is kept; longer than the load balancer keeps its own.'
    })
  },
  'The public listener.'
)
