/** `upstreams` of `routes.yaml`: the back-ends and how to call them. */
import { type TSchema, Type } from 'typebox'
import {
  closed,
  duration,
  flag,
  header,
  headerPattern,
  headerValue,
  list,
  maybe,
  moduleFile,
  optional,
  pemFile,
  secret,
  whole
} from './primitives.ts'
import { upstreamPaging } from './request-mapping.ts'
import { addresses } from './upstream-addresses.ts'
import { endedTest } from './response-tests.ts'
import { upstreamErrors } from './upstream-errors.ts'

export type CredentialConfig =
  | string
  | { readonly from?: string; readonly as: string; readonly scheme?: string }

/** By header name in lower case. */
const headerPairs = <T extends TSchema>(
  value: T,
  meta: { description: string; examples?: unknown[] }
) => Type.Record(Type.String({ pattern: headerPattern }), value, meta)

const styles = 'bearer, cookies or header:NAME'

const credential = Type.Unsafe<CredentialConfig>(
  Type.Union(
    [
      Type.String({ pattern: '^(none|bearer|cookies|header:[a-z0-9-]+)$' }),
      Type.Object(
        {
          from: maybe(Type.String({ minLength: 1 })),
          as: Type.String({ pattern: '^(bearer|cookies|header:[a-z0-9-]+)$', expected: styles }),
          scheme: maybe(
            Type.String({ pattern: '^[A-Za-z][A-Za-z0-9_-]{0,31}$', expected: 'a word' })
          )
        },
        { additionalProperties: false }
      )
    ],
    {
      default: 'none',
      expected: `none, ${styles}, or { as: ${styles}, from: SOURCE, scheme: WORD }`,
      description:
        'How the token or cookies of an `upstream-login` session are sent: `bearer` ' +
        '(`Authorization: Bearer …`), `cookies`, or in a header such as `header:x-token`. If ' +
        'several credential sources have credentials, `{ from: SOURCE, as: bearer }` selects ' +
        'one; a session of another source is then refused (403 `route.credential`). `scheme` is ' +
        'the word before the token: `{ as: bearer, scheme: Token }` sends `Authorization: Token ' +
        '…`. Default: `Bearer` for `bearer`, none for a header.',
      examples: ['bearer', { from: 'orders', as: 'bearer' }, { as: 'bearer', scheme: 'Token' }]
    }
  )
)

const tls = optional(
  {
    ca: maybe(pemFile('A PEM file of authorities, in the place of those of the system.')),
    certificate: maybe(
      pemFile('A PEM file with the certificate that the gateway shows the back-end.')
    ),
    key: maybe(
      secret('Its private key, as PEM text.', { examples: ['file:/run/secrets/orders-client.key'] })
    ),
    serverName: maybe(
      Type.String({
        pattern: '^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$',
        expected: 'a host name',
        description: 'The name in the back-end’s certificate, where it is not that of the URL.'
      })
    )
  },
  'TLS of an https upstream. Files are read again when they change; connections are then made anew.'
)

export const upstream = closed(
  {
    ...addresses,
    connectTimeout: duration('How long connecting may take.', { default: '2s' }),
    responseTimeout: duration(
      'How long the first byte of the response may take. A route can override it (`timeout`).',
      { default: '15s' }
    ),
    idleTimeout: duration(
      'How long the body of a response may make no progress, from the upstream or to the client.',
      { default: '30s' }
    ),
    streamIdle: duration(
      'The same for an event stream (`text/event-stream`), which may be silent longer.',
      { default: '5m' }
    ),
    totalTimeout: duration(
      'How long a response may take as a whole, from when its request has a connection to its ' +
        'last byte. Event streams and WebSockets are exempt.',
      { default: '10m' }
    ),
    connections: whole(
      'The maximum number of concurrent requests. Streamed uploads (above 64 KiB) get at most ' +
        'half of them.',
      { minimum: 1, maximum: 10_000, default: 200 }
    ),
    streams: whole(
      'The maximum number of event streams (`text/event-stream`), which are not counted among ' +
        'the `connections`. More are answered 503 `overloaded`.',
      { minimum: 1, maximum: 100_000, default: 1000 }
    ),
    queue: whole('How many requests may wait for a connection. More are answered 503.', {
      maximum: 100_000,
      default: 100
    }),
    queueTimeout: duration(
      'How long a request may wait for a connection. After that it is answered 503. ' +
        '`responseTimeout` begins after this wait. `0s`: none waits.',
      { default: '10s', minimum: 0 }
    ),
    credential,
    identity: flag('Send the headers of `identity` to this upstream.', { default: true }),
    sessionEnded: maybe(
      endedTest(
        'How to recognise, in any response, that the back-end’s own session of the user has ' +
          'ended: after its restart, or a sign-out there. The session of the gateway then ends ' +
          'too, with 401 `session.upstream`. A GET is asked once more before; for other methods ' +
          'the second such response counts. While the back-end fails (5xx) nobody is signed out.'
      )
    ),
    errors: upstreamErrors,
    headers: maybe(
      headerPairs(headerValue('The value of the header.'), {
        description:
          'Headers that this upstream always gets, also at sign-in and with health checks. They ' +
          'replace those of the client. A `content-type` is for the bodies of clients alone: ' +
          'those that the gateway writes, such as the sign-in’s, keep theirs. For secrets, use ' +
          '`secretHeaders`. `{profile.PATH}` is that member of the user’s profile: the header is ' +
          'sent where it is a text, a number or true or false, percent-encoded where it is not ' +
          'ASCII, and a client’s own never passes.',
        examples: [{ accept: 'application/json' }, { 'x-tenant-id': '{profile.tenantId}' }]
      })
    ),
    secretHeaders: maybe(
      headerPairs(secret('The value of the header.'), {
        description: 'As `headers`, with secret values, such as an API key.',
        examples: [{ 'x-api-key': '${ORDERS_API_KEY}' }]
      })
    ),
    module: maybe(
      moduleFile(
        'Own code for headers that no config can hold, such as a signature of the call: a ' +
          'JavaScript file below the config folder. Its default export gets `{ method, path, ' +
          'headers, body }` and returns headers, also at sign-in and for WebSockets; health checks ' +
          'go without. It runs in the gateway’s process: see docs/shaping.md.',
        { examples: ['./upstreams/sign.js'] }
      )
    ),
    passHeaders: maybe(
      list(
        header('A request header.'),
        'The only headers of the client that this upstream gets; the gateway still adds its ' +
          'own. Default: all, except those that back-ends believe to come from a trusted proxy.',
        { examples: [['accept', 'accept-language', 'content-type', 'user-agent']] }
      )
    ),
    paging: upstreamPaging,
    tls,
    ca: maybe(
      pemFile(
        'A PEM file with the certificate authority of an https upstream. Set it if the system ' +
          'does not trust that authority. Certificates are always verified.',
        { examples: ['/etc/ssl/internal-ca.pem'] }
      )
    )
  },
  'A back-end.'
)
