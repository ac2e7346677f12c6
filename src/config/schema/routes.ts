import type { Static } from 'typebox'
import { answerSchema } from './answer.ts'
import * as s from './primitives.ts'
import { partsSchema, proxied } from './proxied.ts'
import { consolePaging } from './request-mapping.ts'
import { route, type RouteConfig } from './route.ts'
import { shapesSchema } from './shapes.ts'
import { type CredentialConfig, upstream } from './upstreams.ts'

const methods = (initial: string[]) =>
  s.list('The allowed methods. A body is ignored.', s.oneOf('An HTTP method.', ['GET', 'POST']), {
    default: initial,
    minItems: 1,
    uniqueItems: true
  })

const publicPath = (description: string, initial?: string) =>
  s.publicPath(description, { default: initial })

const endpoints = s.section('Endpoints of the gateway itself.', {
  login: s.section('The sign-in endpoint.', {
    path: publicPath('The sign-in call (POST).', '/api/auth/admin/login'),
    answer: answerSchema('The response. Default: what consoles of the dialect read.')
  }),
  logout: s.section('The sign-out endpoint.', {
    path: publicPath('The sign-out call.', '/api/account/logout'),
    methods: methods(['GET', 'POST']),
    answer: answerSchema('The response to every sign-out: a constant. Default: `{}`.')
  }),
  profile: s.section('The endpoint of the current user.', {
    path: publicPath('The current user’s profile.', '/api/account/profile'),
    methods: methods(['GET']),
    upstream: s.may.upstreamName('The one that knows the user, called with GET.'),
    rewrite: proxied.rewrite,
    timeout: proxied.timeout,
    shape: s.may.shapeName('The shape of the user’s members, without an envelope.'),
    answer: answerSchema('The response. `{profile}` is the user after `parts` and `shape`.'),
    contract: proxied.contract,
    parts: partsSchema
  }),
  refresh: s.optional('Where consoles renew their own token. No use of the session.', {
    path: publicPath('The refresh call (POST). Its body is not read.'),
    answer: answerSchema('The response. Default: that of `endpoints.session`.')
  }),
  check: s.optional('For proxies that ask first: 204 with headers of `identity`, 401 or 403.', {
    path: publicPath('The check (GET). `?role=admin&role=ops`: one is needed.', '/api/auth/check'),
    keys: s.flag('Let requests with a key for scripts pass, too.')
  }),
  jwks: s.optional('The public keys of all `jwt.keys` as a JSON Web Key Set.', {
    path: publicPath('The key set (GET).', '/.well-known/jwks.json')
  }),
  session: s.section('The session endpoint.', {
    path: publicPath('GET tells its end. Below: `/extend`, `/list`, `/close`.', '/api/session')
  })
})

const expectation = s.closed('One case.', {
  request: s.text('The method and the path, with `server.mount`, encoded.', {
    pattern: '^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) /[!-~]*$',
    expected: 'a method and a path, such as GET /api/orders?page=2'
  }),
  roles: s.may.someOf('The user’s roles. Without it: not signed in.', s.text(), { minItems: 0 }),
  headers: s.pairs('The request’s headers.', s.anyText()),
  body: s.may.anything('The request’s body. It is sent as JSON.'),
  times: s.count('How often it is sent. The last counts.', { maximum: 1000, default: 1 }),
  answer: s.may.anything('The JSON that the upstream answers with 200. Default: `{}`.'),
  status: s.may.status('The expected status.'),
  code: s.may.text('The expected error code.', { names: 'error code' }),
  upstream: s.may.upstreamName('The upstream that gets it.'),
  upstreamPath: s.may.text('The path and query that it gets.', {
    pattern: '^/[!-~]*$',
    expected: 'a path'
  }),
  response: s.may.anything('The expected body, or some of its members. Lists are compared whole.', {
    examples: [{ data: [{ id: '7' }] }]
  })
})

const expectSchema = s.named(
  'Tests: one that fails refuses the config. Upstreams are stand-ins, sign-ins are refused.',
  expectation,
  { examples: [{ 'profile-needs-session': { request: 'GET /api/account/profile', status: 401 } }] }
)

export type Expectation = Static<typeof expectation>

export const routesSchema = s.closed('Upstreams, routes, shapes. A change needs no restart.', {
  upstreams: s.named('The back-ends, by name.', upstream),
  endpoints,
  aliases: s.byPath('More public paths of a route or endpoint.', s.publicPathTemplate(), {
    keysExpected: s.publicTemplate.expected,
    examples: [{ '/api/currentUser': '/api/account/profile' }]
  }),
  routes: s.named(
    'By name, for logs, metrics and limits. Each has `upstream`, `answer` or `parts`.',
    route
  ),
  permissions: s.pairs(
    'The permissions of each role, for `{permissions}` in answers. They open no route.',
    s.list('Of the role.', s.text()),
    { examples: [{ admin: ['*:*:*'], user: ['order:read'] }] }
  ),
  paging: consolePaging,
  shapes: shapesSchema,
  expect: expectSchema
})

/** The form of a credential, and its source; without `from` the only source that has one. */
export function credentialOf(
  written: CredentialConfig
): Exclude<CredentialConfig, string> & { readonly hasOwnToken: boolean } {
  if (typeof written === 'string') return { as: written, hasOwnToken: false }
  return { ...written, hasOwnToken: (written.exchange ?? written.jwt) !== undefined }
}

export function tokenHeaderOf(as: string): string | undefined {
  if (as === 'bearer') return 'authorization'
  return as.startsWith('header:') ? as.slice('header:'.length) : undefined
}

export type RoutesConfig = Static<typeof routesSchema>
export type UpstreamConfig = RoutesConfig['upstreams'][string]
export type { RouteConfig }
