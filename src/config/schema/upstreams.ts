/** `upstreams` of `routes.yaml`: the back-ends and how to call them. */
import { Type } from 'typebox'
import {
  closed,
  duration,
  flag,
  header,
  headerPattern,
  list,
  maybe,
  moduleFile,
  optional,
  pemFile,
  secret,
  valueOrSecret,
  whole
} from './primitives.ts'
import { upstreamPaging } from './request-mapping.ts'
import { addresses } from './upstream-addresses.ts'
import { endedTest } from './response-tests.ts'
import { upstreamErrors } from './upstream-errors.ts'

export type CredentialConfig =
  | string
  | { readonly from?: string; readonly as: string; readonly scheme?: string }

const styles = 'bearer, cookies or header:NAME'

const credential = Type.Unsafe<CredentialConfig>(
  Type.Union(
    [
      Type.String({ pattern: '^(none|bearer|cookies|header:[a-z0-9-]+)$' }),
      Type.Object(
        {
          from: Type.Optional(Type.String({ minLength: 1, names: 'source' })),
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
    ca: maybe(
      pemFile('A PEM file of authorities, in the place of those of the system.', {
        examples: ['/etc/ssl/internal-ca.pem']
      })
    ),
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
      'How long a response may be silent: before its first byte, and between two. `timeout` of a ' +
        'route overrides it. Event streams may pause for 5 minutes.',
      { default: '15s' }
    ),
    totalTimeout: duration(
      'How long a response may take as a whole. Event streams and WebSockets are exempt.',
      { default: '10m' }
    ),
    connections: whole(
      'How many requests it gets at a time: streamed uploads half of them at most. Five times as ' +
        'many event streams and WebSockets may stand beside them.',
      { minimum: 1, maximum: 10_000, default: 200 }
    ),
    queue: whole('How many requests may wait for a connection, 10 seconds at most.', {
      maximum: 100_000,
      default: 100
    }),
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
      Type.Record(Type.String({ pattern: headerPattern }), valueOrSecret('Its value.'), {
        description:
          'Headers that this upstream always gets, in the place of the client’s. Secrets are ' +
          'references; `{profile.PATH}` is a member of the user’s profile.',
        examples: [
          { 'accept': 'application/json', 'x-api-key': '${ORDERS_API_KEY}' },
          { 'x-tenant-id': '{profile.tenantId}' }
        ]
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
    tls
  },
  'A back-end.'
)
