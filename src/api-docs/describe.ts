/** All public operations of a config: the gateway's own endpoints and the routes. */
import { type OwnKey, ownMethods, ownPaths } from '../config/schema/own-endpoints.ts'
import type { AnswerConfig } from '../config/schema/answer.ts'
import type { SourceConfig } from '../config/schema/gateway.ts'
import { closeBody } from '../config/schema/request-bodies.ts'
import type { Config } from '../config/schema/config.ts'
import { routeSettings } from '../config/schema/resolved.ts'
import { credentialOf, type RouteConfig } from '../config/schema/routes.ts'
import { isSchema as isRecord, type JsonSchema } from '../contract/schema.ts'
import { pascal } from './contract-components.ts'
import {
  type Description,
  DescriptionBuilder,
  envelopeName,
  freeName,
  type Method,
  type Operation
} from './operations.ts'
import {
  closedSchema,
  currentUserSchema,
  listedSessionSchema,
  loginRequestSchema,
  loginResultSchema,
  sessionSchema
} from './own-responses.ts'
import {
  type Dialect,
  failureSchema,
  loginBeside,
  loginRefusedSchema,
  notSignedIn
} from './envelope-schemas.ts'
import { valueSchema } from './answer-schema.ts'
import { describeShape } from './shape-schema.ts'

export function describe(config: Config): Description {
  const builder = new DescriptionBuilder(config)
  addLogin(builder, config)
  addLogout(builder, config)
  addProfile(builder, config)
  addSession(builder, config)
  for (const [name, route] of Object.entries(config.routes.routes)) {
    addRoute(builder, config, name, route)
  }
  const { operations, schemas } = builder
  return { operations, schemas }
}

/** The place of a value in the envelope, and the members beside it. */
interface Place extends NonNullable<Parameters<DescriptionBuilder['success']>[1]> {
  readonly placement: AnswerConfig['inEnvelope']
  readonly dialect: Dialect
}

/** A success of config's own words; its value in its place of the envelope. */
function answered(builder: DescriptionBuilder, answer: AnswerConfig, dialect: Dialect) {
  return {
    ...placed(builder, valueSchema(answer), { placement: answer.inEnvelope, dialect }),
    status: statusOf(answer)
  }
}

function statusOf(answer: AnswerConfig | undefined): number {
  return answer?.status ?? 200
}

function placed(
  builder: DescriptionBuilder,
  value: JsonSchema,
  { placement, ...beside }: Place
): Pick<Operation, 'answer' | 'wrapped'> {
  if (placement === 'none') return builder.bareSuccess(value, beside.missing)
  return placement === 'flat' ? builder.flatSuccess(value, beside) : builder.success(value, beside)
}

/** HEAD is described by the GET that brings it. */
function methodsOf(key: OwnKey, { endpoints }: Config['routes']): Method[] {
  return ownMethods(key, endpoints).filter(method => method !== 'HEAD') as Method[]
}

function addLogin(builder: DescriptionBuilder, { gateway, routes }: Config): void {
  const { envelope, login } = gateway
  const { answer } = routes.endpoints.login
  const signedIn = builder.addSchema(
    'LoginAnswer',
    answer === undefined
      ? builder.success(builder.addSchema('LoginResult', loginResultSchema(envelope.inertToken)), {
          members: loginBeside(envelope)
        }).answer
      : (answered(builder, answer, envelope.dialect).answer ?? {})
  )
  builder.add(routes.endpoints.login.path, methodsOf('login', routes), {
    name: 'login',
    summary: 'Sign in',
    access: 'public',
    request: builder.addSchema('LoginRequest', loginRequestSchema(login.fields)),
    answer:
      login.refusedStatus === 200
        ? { anyOf: [signedIn, builder.addSchema('LoginRefused', loginRefusedSchema(envelope))] }
        : signedIn,
    status: statusOf(answer),
    facts: {
      endpoint: 'login',
      asksUpstream: login.sources.some(({ kind }) => kind === 'upstream-login'),
      refusalKinds: login.refusedStatus === 200 ? [] : login.sources.flatMap(refusalKindsOf)
    }
  })
}

function refusalKindsOf(source: SourceConfig): string[] {
  if (source.kind !== 'upstream-login') return []
  return [
    ...(source.challenge === undefined ? [] : ['challenge']),
    ...(source.blocked === undefined ? [] : ['blocked']),
    ...(source.expiredPassword === undefined ? [] : ['expired-password'])
  ]
}

function addLogout(builder: DescriptionBuilder, { gateway, routes }: Config): void {
  const { answer } = routes.endpoints.logout
  builder.add(routes.endpoints.logout.path, methodsOf('logout', routes), {
    name: 'logout',
    summary: 'Sign out; also without a session',
    access: 'public',
    ...(answer === undefined
      ? builder.success({ type: 'object' })
      : answered(builder, answer, gateway.envelope.dialect)),
    facts: { endpoint: 'logout' }
  })
}

function addProfile(builder: DescriptionBuilder, { gateway, routes }: Config): void {
  const { profile } = routes.endpoints
  const { shapes } = routes
  const fromUpstream = profile.from === 'upstream' || Object.keys(profile.parts).length > 0
  const shaped = describeShape(shapes[profile.shape ?? ''] ?? [], shapes).data['properties']
  const described =
    profile.answer === undefined
      ? currentUserSchema(isRecord(shaped) ? (shaped as Record<string, JsonSchema>) : {})
      : valueSchema(profile.answer)
  const user =
    builder.addContract('profile', 'CurrentUser') ?? builder.addSchema('CurrentUser', described)
  builder.add(profile.path, methodsOf('profile', routes), {
    name: 'profile',
    summary: 'The current user',
    access: 'session',
    ...placed(builder, user, {
      placement: (profile.answer ?? profile).inEnvelope,
      dialect: gateway.envelope.dialect,
      missing: missingOf(profile)
    }),
    // Config refuses a status beside an upstream's.
    status: statusOf(profile.answer),
    failureBeside: { 401: notSignedIn(gateway.envelope) },
    facts: {
      endpoint: 'profile',
      asksUpstream: fromUpstream,
      namesSource: fromUpstream && namesSource(profile, routes.upstreams),
      isRead: fromUpstream,
      isStrict: profile.contract?.mode === 'strict'
    },
    upstreamErrors: fromUpstream ? 'enveloped' : 'none'
  })
}

function addSession(builder: DescriptionBuilder, { routes }: Config): void {
  const paths = ownPaths(routes.endpoints)
  const add = (
    key: Exclude<keyof typeof paths, 'login' | 'logout' | 'profile'>,
    operation: Pick<Operation, 'summary' | 'answer' | 'wrapped' | 'request'> &
      Partial<Pick<Operation, 'status'>>
  ) =>
    builder.add(paths[key] ?? '', methodsOf(key, routes), {
      name: 'session',
      access: 'session',
      facts: { endpoint: 'session' },
      ...operation
    })
  const session = builder.success(builder.addSchema('Session', sessionSchema))
  add('session', {
    summary: 'The time left of the session; the call does not extend it',
    ...session
  })
  add('extend', { summary: 'Extend the session', ...session })
  const { refresh } = routes.endpoints
  if (refresh !== undefined) {
    const answer = refresh.answer === undefined ? session : { answer: {} }
    const status = statusOf(refresh.answer)
    add('refresh', { summary: 'Renew the token of the console', ...answer, status })
  }
  const listed = builder.addSchema('ListedSession', listedSessionSchema)
  add('list', {
    summary: 'The user’s own sessions',
    ...builder.success(
      { type: 'array', items: listed },
      { members: { total: { type: 'integer' } } }
    )
  })
  add('close', {
    summary: 'Close one session of the user, the others, or all',
    request: closeBody,
    ...builder.success(closedSchema)
  })
}

function addRoute(
  builder: DescriptionBuilder,
  config: Config,
  name: string,
  route: RouteConfig
): void {
  const {
    gateway: { envelope },
    routes: { shapes, upstreams },
    contracts
  } = config
  const { schemas } = builder
  const { dialect, errorStatus } = routeSettings(config, name, route)
  if (dialect !== envelope.dialect) {
    const failureName = envelopeName('Failure', dialect, envelope.dialect)
    schemas[failureName] = failureSchema(config, dialect)
  }
  const shaped = describeShape(shapes[route.shape ?? ''] ?? [], shapes)
  const isRead = route.shape !== undefined || Object.keys(route.parts).length > 0
  const dataName = freeName(`${pascal(name)}Data`, taken => Object.hasOwn(schemas, taken))
  const shapedData = () =>
    Object.keys(shaped.data).length === 0 ? {} : builder.addSchema(dataName, shaped.data)
  const data = builder.addContract(name, dataName) ?? shapedData()
  if (route.answer !== undefined) {
    return builder.add(route.path, route.methods as Method[], {
      name,
      summary: `The route ${name}`,
      access: route.access,
      dialect,
      errorsAreOk: errorStatus === 'ok',
      ...answered(builder, route.answer, dialect),
      facts: {}
    })
  }
  const success = () => {
    const missing = missingOf(route)
    if (shaped.isFlat) return builder.flatSuccess(data, { dialect, missing })
    if (!shaped.isWrapped) return builder.bareSuccess(data, missing)
    return builder.success(data, {
      members: shaped.beside,
      required: [...shaped.requiredBeside],
      missing,
      dialect
    })
  }
  builder.add(route.path, route.methods as Method[], {
    name,
    summary: `The route ${name}`,
    access: route.access,
    dialect,
    errorsAreOk: errorStatus === 'ok',
    ...((isRead || Object.hasOwn(contracts, name)) && success()),
    takesUpgrades: route.websocket !== undefined,
    facts: {
      asksUpstream: true,
      takesUpgrades: route.websocket !== undefined,
      namesSource: namesSource(route, upstreams),
      isRead,
      isStrict: route.contract?.mode === 'strict'
    },
    upstreamErrors: isRead ? 'enveloped' : 'plain'
  })
}

/** Whether an upstream of the route gets credentials of one source only. */
function namesSource(
  { upstream, parts }: Pick<RouteConfig, 'upstream' | 'parts'>,
  upstreams: Config['routes']['upstreams']
): boolean {
  return [upstream, ...Object.values(parts).map(part => part.upstream)].some(
    name => credentialOf(upstreams[name ?? '']?.credential ?? 'none').from !== undefined
  )
}

/** The member that lists missing parts, if a part may be missing. */
function missingOf({
  parts,
  missing
}: Pick<RouteConfig, 'parts' | 'missing'>): Record<string, JsonSchema> {
  return Object.values(parts).some(({ required }) => !required)
    ? {
        [missing]: {
          type: 'array',
          items: { type: 'string' },
          description: 'The missing parts of the response; absent if none is missing.'
        }
      }
    : {}
}
