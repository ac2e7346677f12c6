/** Live config, `expect` of `routes.yaml`: what requests have to lead to, for this config to be taken. */
import { Type, type Static } from 'typebox'
import { list, name, named, pairs, text, whole } from './primitives.ts'

export const expectSchema = named(
  Type.Object(
    {
      request: Type.String({
        pattern: '^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) /[!-~]*$',
        expected: 'a method and a path, such as GET /api/orders?page=2',
        description:
          'The method and the path, with `server.mount` and all. Letters beyond ASCII are escaped by `%`.',
        examples: ['GET /api/currentUser']
      }),
      roles: Type.Optional(
        list(text({ description: 'A role.' }), {
          description:
            'Signed in, with these roles (`[]`: with none). Without it nobody is signed in.'
        })
      ),
      headers: pairs(Type.String(), { default: {}, description: 'Header fields of the request.' }),
      body: Type.Optional(Type.Unknown({ description: 'The body, sent as JSON.' })),
      address: Type.Optional(
        text({
          description: 'The address that it comes from; one of its own for each case, without it.',
          examples: ['203.0.113.7']
        })
      ),
      times: whole({
        minimum: 1,
        maximum: 1000,
        default: 1,
        description: 'So many times, one after the other; what is expected is expected of the last.'
      }),
      answer: Type.Optional(
        Type.Unknown({
          description: 'The JSON that the upstream answers, with 200; `{}` without it.'
        })
      ),
      status: Type.Optional(
        whole({ minimum: 100, maximum: 599, description: 'The HTTP status that is expected.' })
      ),
      code: Type.Optional(
        text({
          description: 'The error code that is expected in the envelope.',
          examples: ['session.none']
        })
      ),
      upstream: Type.Optional(name({ description: 'The upstream that is expected to be asked.' })),
      upstreamPath: Type.Optional(
        Type.String({
          pattern: '^/[!-~]*$',
          expected: 'a path',
          description: 'The path, with its query, that is expected to be asked there.',
          examples: ['/accounts/me']
        })
      )
    },
    {
      additionalProperties: false,
      description:
        'A case. It runs against this config in a process without sockets: upstreams answer at once, stores are empty, and every sign-in is refused.'
    }
  ),
  {
    description:
      'What has to be so, by name: tried by `console-gateway check`, at start and before every reload. A case that fails is a fault.',
    examples: [{ 'profile-needs-session': { request: 'GET /api/account/profile', status: 401 } }]
  }
)

export type Expectation = Static<typeof expectSchema>[string]
