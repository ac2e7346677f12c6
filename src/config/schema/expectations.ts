/** `expect` of `routes.yaml`: tests that a config must pass before it is used. */
import { Type, type Static } from 'typebox'
import * as s from './primitives.ts'

const expectation = s.closed(
  {
    request: s.text(
      'The method and the path, with `server.mount`, letters outside ASCII encoded.',
      {
        pattern: '^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) /[!-~]*$',
        expected: 'a method and a path, such as GET /api/orders?page=2'
      }
    ),
    roles: s.may.someOf(s.anyText, 'The roles of the signed-in user. Without it: not signed in.', {
      minItems: 0
    }),
    headers: s.pairs(Type.String(), 'The request’s headers.', {
      default: {}
    }),
    body: s.may.anything('The request’s body. It is sent as JSON.'),
    times: s.whole('How often it is sent, to test a limit. The last response is compared.', {
      minimum: 1,
      maximum: 1000,
      default: 1
    }),
    answer: s.may.anything('The JSON that the upstream answers with 200. Default: `{}`.'),
    status: s.may.whole('The expected HTTP status.', { minimum: 100, maximum: 599 }),
    code: s.may.text('The expected error code.', { names: 'error code' }),
    upstream: s.may.upstreamName('The upstream that is expected to get it.'),
    upstreamPath: s.may.text('The path, with its query, that the upstream is expected to get.', {
      pattern: '^/[!-~]*$',
      expected: 'a path'
    }),
    response: s.maybe(
      Type.Unknown({
        description: 'The expected body, or some of its members. Lists are compared whole.',
        examples: [{ data: [{ id: '7' }] }]
      })
    )
  },
  'One case.'
)

export const expectSchema = s.named(
  expectation,
  'Tests of this config, by name, which `check`, every start and every reload run. If ' +
    'one fails, the config is refused. Upstreams only record the request, stores are ' +
    'empty, and every sign-in is refused.',
  { examples: [{ 'profile-needs-session': { request: 'GET /api/account/profile', status: 401 } }] }
)

export type Expectation = Static<typeof expectation>
