/** `server` of `gateway.yaml`: the public listener. */
import { Type } from 'typebox'
import { certificatePair } from './certificate-pair.ts'
import {
  duration,
  flag,
  header,
  list,
  listen,
  maybe,
  optional,
  origin,
  section,
  text,
  whole
} from './primitives.ts'

const tls = optional(
  {
    ...certificatePair({
      certificate: '/etc/ssl/console.example.com.pem',
      key: 'file:/etc/ssl/console.example.com.key'
    }),
    redirect: maybe(
      listen(
        'The address and port of a second listener that only redirects http to https (308), ' +
          'for GET and HEAD of the names in `server.hosts`. It redirects to the first of ' +
          '`server.ports`, or else to port 443.',
        { examples: ['0.0.0.0:80'] }
      )
    )
  },
  'https by the gateway itself, where no proxy ends TLS: TLS 1.2 and newer, HTTP/1.1. ' +
    'Certificate and key are read again when their files change or a signal asks for a reload; ' +
    'a pair that does not fit is refused, and the former stays in force. Adding or removing ' +
    '`tls` needs a restart.'
)

export const server = section(
  {
    listen: listen(
      'The address and port at which the console reaches the gateway. `0.0.0.0` listens on ' +
        'all IPv4 addresses, for containers.',
      { default: '127.0.0.1:8080', examples: ['0.0.0.0:8080', '[::]:8080'] }
    ),
    hosts: list(
      text('A host name, without port.', { format: 'x-host' }),
      'The host names of the console. Requests with another `Host` are refused. Empty: every ' +
        'well-formed name is accepted. Set it in production: only a listed name is sent to ' +
        'upstreams as `X-Forwarded-Host`.',
      { default: [], examples: [['console.example.com']] }
    ),
    ports: list(
      whole('A port.', { minimum: 1, maximum: 65_535 }),
      'Ports that may appear in `X-Forwarded-Host`, in addition to that of `server.listen`. ' +
        'Set it if the console’s public URL has a port. Other ports that clients send are ' +
        'dropped.',
      { default: [], examples: [[8443]] }
    ),
    origins: list(
      origin('An origin.'),
      'Other origins whose pages may call with credentials (CORS). A page on another *site* ' +
        'also needs `session.cookie.sameSite: none`.',
      { default: [], examples: [['https://console.example.com']] }
    ),
    corsHeaders: list(
      header('A request header.'),
      'Request headers that pages of `origins` may send.',
      {
        default: [
          'accept',
          'authorization',
          'content-type',
          'x-csrf-token',
          'x-requested-with',
          'x-xsrf-token'
        ]
      }
    ),
    exposeHeaders: list(
      header('A response header.'),
      'More response headers that pages of `origins` may read. They may read ' +
        '`Content-Disposition`, `Content-Range`, `ETag`, `X-Total-Count`, `X-Request-ID` and ' +
        'those of limits and sessions.',
      { default: [], examples: [['x-next-page']] }
    ),
    compress: flag(
      'Compress responses of text (JSON, HTML, scripts) that are larger than 1 KiB and not ' +
        'compressed yet, with br or gzip. A proxy in front does it with less CPU time of this ' +
        'process. Files of the console that are compressed beside the plain ones are always used.',
      { default: false }
    ),
    trustedProxies: list(
      text('An address or CIDR block.', { format: 'x-addresses' }),
      'Addresses of the load balancers in front of the gateway. Only their `X-Forwarded-For` ' +
        'and `X-Forwarded-Proto` are used. Empty: nobody’s.',
      { default: [], examples: [['10.0.0.0/8']] }
    ),
    mount: maybe(
      Type.String({
        pattern: "^(/(?!\\.\\.?(/|$))[A-Za-z0-9._~!$&'()+,=@-]+)+$",
        expected: 'a path such as /admin, with no / or * at its end and no empty or dot segments',
        description:
          'A prefix of every public path. With `/admin`, `/api/notices` becomes ' +
          '`/admin/api/notices`.',
        examples: ['/admin']
      })
    ),
    tls,
    headersTimeout: duration('How long a client may take to send its headers.', { default: '10s' }),
    requestTimeout: duration(
      'How long a client may take to send a body of up to 64 KiB. A longer one may take as ' +
        'long as it comes with 1 KiB a second at least.',
      { default: '30s' }
    ),
    idleTimeout: duration(
      'How long a client may take nothing of a response before its connection is closed.',
      { default: '30s', format: 'x-duration' }
    ),
    maxConnections: whole(
      'The maximum number of connections to one process. One address gets at most a quarter of ' +
        'them, unless it is in `trustedProxies`. When all are in use, the oldest one without a ' +
        'request is closed for a new one; without any, the new one is reset.',
      { minimum: 16, maximum: 1_000_000, default: 10_000 }
    ),
    keepAlive: duration(
      'How long an unused connection stays open. Make it longer than the keep-alive time of ' +
        'the load balancer.',
      { default: '72s' }
    )
  },
  'The public listener.'
)
