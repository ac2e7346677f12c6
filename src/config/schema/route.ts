/** `routes` of `routes.yaml`: one public path that is proxied. */
import { Type } from 'typebox'
import { dialects, errorStatuses } from './envelope.ts'
import { missingSchema, partsSchema } from './parts.ts'
import { proxied } from './proxied.ts'
import {
  closed,
  dotted,
  flag,
  header,
  list,
  maxShaped,
  name,
  oneOf,
  path,
  size,
  text
} from './primitives.ts'

const access = Type.Unsafe<'public' | 'session' | { roles: string[] }>(
  Type.Union(
    [
      Type.String({ enum: ['public', 'session'] }),
      Type.Object(
        { roles: Type.Array(Type.String({ minLength: 1 }), { minItems: 1 }) },
        { additionalProperties: false }
      )
    ],
    {
      default: 'session',
      expected: 'public, session, or roles: [NAME, …]',
      instead: '{ roles: [VALUE] }',
      description:
        'Who may call: anyone (`public`), whoever is signed in (`session`), or whoever has one of the roles (`roles: [admin]`).'
    }
  )
)

export const route = closed(
  {
    path: path({
      description: 'The public path; `/*` at its end takes everything below.',
      examples: ['/api/notices', '/api/orders/*']
    }),
    methods: list(oneOf(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], { description: 'A method.' }), {
      default: ['GET'],
      minItems: 1,
      uniqueItems: true,
      description: 'The methods; GET brings HEAD.'
    }),
    access,
    parts: partsSchema,
    missing: missingSchema,
    into: Type.Optional(
      dotted({
        description:
          'With `parts`: where the answer of the route’s own upstream stands among them; without it, the parts are added to that answer.',
        examples: ['items']
      })
    ),
    touch: Type.Optional(
      oneOf(['always', 'never'], {
        description:
          'Whether a call keeps the session from going idle. `never` suits what a page polls by itself. Without it: never for a route named `notices`, always for others.'
      })
    ),
    ...proxied,
    upstream: Type.Optional(
      name({ description: 'An upstream of this file. A route with `parts` may do without.' })
    ),
    dialect: Type.Optional(
      oneOf([...dialects], {
        description:
          'The envelope of this route’s answers; `envelope.dialect` of `gateway.yaml` without it.'
      })
    ),
    errorStatus: Type.Optional(
      oneOf([...errorStatuses], {
        description:
          'The HTTP status of this route’s errors; `envelope.errorStatus` of `gateway.yaml` without it.'
      })
    ),
    maxBody: Type.Optional(
      size({ description: 'The largest request body; `sizes.body` of `limits.yaml` without it.' })
    ),
    maxShaped: Type.Optional(
      size({
        maximum: maxShaped,
        description:
          'The largest answer that is shaped, as it comes and unpacked; `sizes.shape` of `limits.yaml` without it.'
      })
    ),
    tooLarge: oneOf(['refuse', 'pass'], {
      default: 'refuse',
      description:
        'What becomes of an answer that is too large to be shaped: 502 `shape.too-large`, or it passes unshaped, byte for byte. It is never cut.'
    }),
    passAuthorization: flag({
      default: false,
      description: 'Whether the client’s own `Authorization` goes to the upstream.'
    }),
    passCookies: list(text({ description: 'A cookie name.' }), {
      default: [],
      description: 'Cookies of the client that go to the upstream. No other does.'
    }),
    passRefusedHeaders: list(header({ description: 'A request header, in full.' }), {
      default: [],
      description:
        'Header fields of the client that go to the upstream although back-ends take them as ' +
        'the word of a proxy (`X-Forwarded-*`, `X-User-*`, `X-Scope-OrgID`, …). `check` warns of each.',
      examples: [['x-scope-orgid']]
    }),
    setCookies: list(text({ description: 'A cookie name.' }), {
      default: [],
      description: 'Cookies that this upstream may set in the browser. No other does.'
    }),
    redirects: oneOf(['refuse', 'pass'], {
      default: 'refuse',
      description:
        'What becomes of an upstream’s redirect elsewhere: 502, or passed on. One to the upstream itself is translated to its public path.'
    })
  },
  { description: 'A public path that is proxied.' }
)
