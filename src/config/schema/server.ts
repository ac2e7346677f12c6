/** `server` of `gateway.yaml`, the public listener, and `console`, the files that it serves. */
import * as s from './primitives.ts'

/** Of a listener. A running one takes another pair. */
export const certificatePair = (host: string) => ({
  certificate: s.pemFile('A PEM file with the certificate, and after it those of its issuers.', {
    restart: false
  }),
  key: s.secret('Its private key, as PEM text without a password.', {
    restart: false,
    examples: [`file:/etc/ssl/${host}.key`]
  })
})

export const server = s.section(
  {
    listen: s.listen('Where the console reaches the gateway. `0.0.0.0`: on all IPv4 addresses.', {
      default: '127.0.0.1:8080',
      examples: ['0.0.0.0:8080', '[::]:8080']
    }),
    hosts: s.list(
      s.text('A host name.', { format: 'x-public-host' }),
      'The host names of the console, with the port of its public URL if that has one. Others are ' +
        'refused (empty: none). Only these are sent to upstreams as `X-Forwarded-Host`.',
      { examples: [['console.example.com'], ['console.example.com:8443']] }
    ),
    origins: s.list(
      s.origin('An origin.'),
      'Other origins whose pages may call with credentials (CORS). Pages of another *site* also ' +
        'need `session.cookie.sameSite: none`.',
      { examples: [['https://console.example.com']] }
    ),
    exposeHeaders: s.list(
      s.header('A response header.'),
      'More response headers that pages of `origins` may read, beside `Content-Disposition`, ' +
        '`Content-Range`, `ETag`, `X-Total-Count`, `X-Request-ID` and those of limits and sessions.'
    ),
    compress: s.flag(
      'Compress text of more than 1 KiB with br or gzip, if no proxy in front does. Files of the ' +
        'console that are compressed beside the plain ones are used in any case.'
    ),
    trustedProxies: s.list(
      s.text('An address or CIDR block.', { format: 'x-addresses' }),
      'The load balancers in front of the gateway. Only their `X-Forwarded-For` and ' +
        '`X-Forwarded-Proto` are used.',
      { examples: [['10.0.0.0/8']] }
    ),
    mount: s.may.text(
      'A prefix of every public path: `/admin` makes `/admin/api/notices` of `/api/notices`.',
      {
        pattern: "^(/(?!\\.\\.?(/|$))[A-Za-z0-9._~!$&'()+,=@-]+)+$",
        expected: 'a path such as /admin, with no / or * at its end and no empty or dot segments'
      }
    ),
    tls: s.optional(
      {
        ...certificatePair('console.example.com'),
        redirect: s.may.listen(
          'Where a second listener redirects http to https (308), for the names in ' +
            '`server.hosts`: to the port that stands there, or else to 443.'
        )
      },
      'https by the gateway itself, where no proxy ends TLS: TLS 1.2 and newer, HTTP/1.1.'
    ),
    requestTimeout: s.duration(
      'How long a client may take to send a body of up to 64 KiB. A longer one may take as long ' +
        'as it comes with 1 KiB a second.',
      { default: '30s' }
    ),
    idleTimeout: s.duration(
      'How long a client may take nothing of a response before its connection is closed.',
      { default: '30s' }
    ),
    keepAlive: s.duration(
      'How long an unused connection stays open. Make it longer than the load balancer does.',
      { default: '72s' }
    ),
    maxConnections: s.whole(
      'The maximum number of connections to one process. One address gets at most a quarter of ' +
        'them, unless it is in `trustedProxies`.',
      { minimum: 16, maximum: 1_000_000, default: 10_000 }
    )
  },
  'The public listener.'
)

export const consoleFiles = s.optional(
  {
    root: s.text('The folder with the built console.'),
    contentSecurityPolicy: s.text(
      'The `Content-Security-Policy` header of the console’s pages. The default works with ' +
        'every console; make it stricter if yours allows it.',
      {
        default: "base-uri 'self'; object-src 'none'; frame-ancestors 'none'"
      }
    ),
    signIn: s.may.name(
      'A source of kind `oidc`: whoever opens a page of the console without a session is sent to ' +
        'its sign-in. Default: the console shows its own sign-in page.',
      { names: 'source' }
    )
  },
  'Serves the built console, so that page and API share an origin. Unknown paths get ' +
    '`index.html` (history fallback); hashed assets are cached for a year.'
)
