/** `upstreams` of `routes.yaml`: the back-ends, and how each is called. */
import { Type } from 'typebox'
import { closed, duration, flag, header, list, size, text, url, whole } from './primitives.ts'

export type CredentialConfig = string | { readonly from: string; readonly as: string }

const styles = 'bearer, cookies or header:NAME'

const credential = Type.Unsafe<CredentialConfig>(
  Type.Union(
    [
      Type.String({ pattern: '^(none|bearer|cookies|header:[a-z0-9-]+)$' }),
      Type.Object(
        {
          from: Type.String({ minLength: 1 }),
          as: Type.String({ pattern: '^(bearer|cookies|header:[a-z0-9-]+)$', expected: styles })
        },
        { additionalProperties: false }
      )
    ],
    {
      default: 'none',
      expected: `none, ${styles}, or { from: SOURCE, as: ${styles} }`,
      description:
        'How the credential of an `upstream-login` session is sent: `bearer` ' +
        '(`Authorization: Bearer …`), `cookies`, or `header:x-token`. Where several credential ' +
        'sources give one, `{ from: SOURCE, as: bearer }` names the source whose sessions send ' +
        'theirs; a session of another source is refused (403 `route.credential`).',
      examples: [{ from: 'upstream-login:orders', as: 'bearer' }]
    }
  )
)

export const upstream = closed(
  {
    url: url({
      description: 'The back-end’s address; a path in it stands before every upstream path.',
      examples: ['http://orders.internal:8080']
    }),
    connectTimeout: duration({ default: '2s', description: 'How long a connection may take.' }),
    responseTimeout: duration({
      default: '15s',
      description: 'How long the first byte of the answer may take; a route may say otherwise.'
    }),
    idleTimeout: duration({
      default: '30s',
      description: 'How long an answer’s body may stall, on either side.'
    }),
    connections: whole({
      minimum: 1,
      maximum: 10_000,
      default: 200,
      description:
        'Requests in flight at once. Uploads that are streamed (above 64 KiB) get at most half of them.'
    }),
    queue: whole({
      maximum: 100_000,
      default: 100,
      description: 'Requests that wait for one of those; more are answered 503.'
    }),
    queueBytes: size({
      default: '16MiB',
      description:
        'The most that the bodies of waiting requests may be in all; more are answered 503.'
    }),
    queueTimeout: duration({
      default: '10s',
      description:
        'How long a request may wait for a connection before it is answered 503. It is ' +
        'no part of `responseTimeout`, which begins when the request has one.'
    }),
    credential,
    identity: flag({ default: true, description: 'Whether the identity header fields are sent.' }),
    passHeaders: Type.Optional(
      list(header({ description: 'A request header.' }), {
        description:
          'Header fields of the client that this upstream gets, and no others (the gateway’s ' +
          'own are added as ever). Without it all pass but those that back-ends take as the word of a proxy.',
        examples: [['accept', 'accept-language', 'content-type', 'user-agent']]
      })
    ),
    ca: Type.Optional(
      text({
        description:
          'A PEM file with the authority of an https upstream, where the system does not know it. Certificates are always verified.'
      })
    )
  },
  { description: 'A back-end.' }
)
