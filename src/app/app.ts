/** The map: every hook in its order, every endpoint. Nothing else decides order. */
import { resolve } from 'node:path'
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import cookie from '@fastify/cookie'
import cors from '@fastify/cors'
import Fastify, {
  LogController,
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest
} from 'fastify'
import type { Config } from '../config/schema/config.ts'
import { createEnvelope } from '../shaping/envelope.ts'
import { toGatewayError } from '../errors.ts'
import { addComposed } from './endpoints/aggregated.ts'
import { addConsole } from './endpoints/console.ts'
import { addLogin } from './endpoints/login.ts'
import { addLogout } from './endpoints/logout.ts'
import { addProfile } from './endpoints/profile.ts'
import { addProxied } from './endpoints/proxied-routes.ts'
import { addSession } from './endpoints/session.ts'
import { addUnknown } from './endpoints/unknown.ts'
import { addStalledReaders } from './hooks/stalled-readers.ts'
import type { Access } from './hooks/context.ts'
import { addAccessLog } from './hooks/access-log.ts'
import { readJsonBodies } from './hooks/json-body.ts'
import { createTrust } from './hooks/address.ts'
import { createForwardedHost } from './hooks/forwarded-for.ts'
import { countedErrors, errorHandler, logUnrouted } from './hooks/errors.ts'
import { requestLog } from './hooks/request-log.ts'
import { createRequestMetrics } from './hooks/metrics.ts'
import { createLimits } from './hooks/limits.ts'
import { createKnownBrowser } from './hooks/known-browser.ts'
import { createLockout } from './hooks/lockout.ts'
import { createSignInLimits } from './hooks/sign-in-limits.ts'
import { addStandardFields, setStandardFields, standardFields } from './hooks/standard-headers.ts'
import { requestPolicy } from './hooks/request-policy.ts'
import { sameOrigin } from './hooks/same-origin.ts'
import { createMaintenance } from './hooks/maintenance.ts'
import { createGuard } from './hooks/guard.ts'
import { addSessionReader, addSessions, sessionCookie } from './hooks/session.ts'
import { addTokenRefresh } from './hooks/token-refresh.ts'
import { createTokenRefresh } from '../login/token-refresh.ts'
import { collectRoutes, createSources } from './compile-routes.ts'
import type { GenerationServices } from './generation-services.ts'
import { takeTurns } from './yield.ts'

/** Builds one generation. It owns nothing that lives longer: closing it leaves `services` as they are. */
export async function buildApp(
  config: Config,
  services: GenerationServices
): Promise<FastifyInstance> {
  const {
    gateway,
    limits: { sizes }
  } = config
  const { server } = gateway
  const hosts = server.hosts.map(host => host.toLowerCase())
  const mount = server.mount ?? ''
  const envelope = createEnvelope(gateway.envelope)
  const cookieKind = sessionCookie(gateway.session.cookie)
  const sources = services.sources ?? createSources(config, services)
  const othersTurn = takeTurns()
  const { login, logout, profile, session, proxied, composed } = await collectRoutes(
    config,
    services,
    othersTurn
  )
  const partsMissing = services.metrics.counter(
    'console_gateway_parts_missing_total',
    'Answers without a part that is not required, by route and part.',
    ['route', 'part']
  )
  const forwardedHost = createForwardedHost(hosts, server.ports)
  const gathering = {
    forwardedHost,
    countMissing: (route: string, part: string) => partsMissing.with(route, part).inc()
  }
  const addRoutes = async (scope: FastifyInstance, isIn: (access: Access) => boolean) => {
    await addProxied(
      scope,
      proxied.filter(({ access }) => isIn(access)),
      { identity: gateway.identity, mount, ...gathering },
      othersTurn
    )
    for (const route of composed) if (isIn(route.access)) addComposed(scope, route, gathering)
  }
  const expireTokenCookies = (reply: FastifyReply) => {
    for (const name of gateway.envelope.tokenCookies) reply.clearCookie(name, { path: '/' })
  }

  const log: FastifyBaseLogger = services.log
  const fields = standardFields(gateway.session.cookie.secure)
  const errors = countedErrors(services.metrics)
  const answerError = errorHandler({
    envelope,
    errorStatus: gateway.envelope.errorStatus,
    extraOf: (request, error) =>
      request.routeOptions.config.route === 'profile' && error.status === 401
        ? { data: { isLogin: false } }
        : undefined,
    onError: code => errors.with(code).inc()
  })
  const trust = server.trustedProxies.length > 0 ? createTrust(server.trustedProxies) : undefined
  const app = Fastify({
    loggerInstance: log,
    logController: new LogController({
      disableRequestLogging: true,
      requestIdLogLabel: 'requestId'
    }),
    trustProxy: trust ?? false,
    childLoggerFactory: (base, bindings) => requestLog(base, String(bindings.requestId)),
    requestIdHeader: false,
    genReqId: requestId(trust),
    exposeHeadRoutes: false,
    bodyLimit: sizes.body,
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false } },
    // A path that the router cannot even decode: no hook runs.
    frameworkErrors: (error, request, reply) => {
      setStandardFields(request, reply, fields)
      answerError(error, request as FastifyRequest, reply as FastifyReply)
      logUnrouted(log, toGatewayError(error).code, request.ip)
    },
    routerOptions: { maxParamLength: sizes.url },
    // Building gives way to requests, so it may take its time.
    pluginTimeout: 0
  })

  services.watch?.(app)
  readJsonBodies(app)
  // Every request, in this order.
  addAccessLog(app, services.log, createRequestMetrics(services.metrics), services.running)
  addStandardFields(app, fields)
  addStalledReaders(app, server.idleTimeout)
  app.addHook('onRequest', requestPolicy({ hosts, sizes }))
  if (server.origins.length > 0)
    await app.register(cors, {
      origin: [...server.origins],
      credentials: true,
      methods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
      allowedHeaders: [...server.corsHeaders],
      exposedHeaders: [
        'x-request-id',
        'retry-after',
        'ratelimit',
        'ratelimit-policy',
        'x-session-idle-in',
        'x-session-absolute-in'
      ],
      maxAge: 600
    })
  app.setErrorHandler(answerError)
  await app.register(cookie, { hook: 'onRequest' })
  const refused = services.metrics.counter(
    'console_gateway_limit_refused_total',
    'Requests that a limit refused, by its name.',
    ['limit']
  )
  const shadowed = services.metrics.counter(
    'console_gateway_limit_shadowed_total',
    'Requests that a limit in shadow would have refused, by its name.',
    ['limit']
  )
  const onRefused = (limit: string, inShadow: boolean) =>
    (inShadow ? shadowed : refused).with(limit).inc()
  const checkLimits = createLimits({
    config: config.limits,
    leases: services.leases,
    inFlight: services.inFlight,
    onRefused
  })
  const known = createKnownBrowser({
    config: config.limits.lockout.knownBrowser,
    cookie: cookieKind,
    secrets: services.secrets
  })
  const locks = services.metrics.counter(
    'console_gateway_lockouts_total',
    'Locks of sign-in after too many failures, by what they lock: account, address, or browser for a known one.',
    ['of']
  )
  const lockout = createLockout({
    config: config.limits,
    lockouts: services.lockouts,
    known,
    onRefused,
    onLocked: kind => locks.with(kind).inc()
  })
  const signInLimits = await createSignInLimits(app, {
    config: config.limits,
    counters: services.counters,
    lockout,
    onRefused
  })
  const signIns = services.metrics.counter(
    'console_gateway_sign_ins_total',
    'Attempts to sign in, by what became of them: accepted, refused, limited, malformed, or failed where it could not be decided.',
    ['outcome']
  )
  const checkOrigin = sameOrigin(server.origins)
  const { maintenance } = config.routes
  const refuseClosed =
    maintenance === undefined
      ? undefined
      : createMaintenance({ config: maintenance, routes: Object.keys(config.routes.routes) })

  // What needs to know who asks.
  const carriage = { sessions: services.sessions, cookie: cookieKind, secrets: services.secrets }
  const addChecks = (scope: FastifyInstance) => {
    scope.addHook('onRequest', checkOrigin)
    scope.addHook('onRequest', checkLimits)
    scope.addHook(
      'onRequest',
      createGuard({ sessions: services.sessions, tell: gateway.session.headers })
    )
    if (refuseClosed !== undefined) scope.addHook('onRequest', refuseClosed)
    scope.removeContentTypeParser('text/plain')
  }
  // Opens and closes sessions: the plugin gives and takes the cookie.
  app.register(
    async scope => {
      await addSessions(scope, carriage)
      addChecks(scope)
      addLogin(scope, {
        paths: login,
        maxBody: sizes.login,
        config: gateway.login,
        sources,
        limits: signInLimits,
        sessions: services.sessions,
        cookie: cookieKind,
        expireTokenCookies,
        envelope,
        onOutcome: outcome => signIns.with(outcome).inc()
      })
      addLogout(scope, {
        paths: logout,
        sources,
        cookie: cookieKind,
        expireTokenCookies,
        envelope,
        checkOrigin: sameOrigin(server.origins, { always: true })
      })
    },
    { prefix: mount }
  )
  // Only asks for it.
  app.register(
    async scope => {
      addSessionReader(scope, carriage)
      addChecks(scope)
      addSession(scope, {
        paths: session,
        sessions: services.sessions,
        cookie: cookieKind,
        envelope
      })
      addProfile(scope, { ...profile, envelope })
      scope.register(async inner => {
        inner.removeAllContentTypeParsers()
        addTokenRefresh(
          inner,
          createTokenRefresh({
            sessions: services.sessions,
            sources,
            onFailed: err =>
              log.warn({ err }, 'a back-end’s token could not be renewed; it holds a little longer')
          })
        )
        await addRoutes(inner, access => access !== 'public')
      })
    },
    { prefix: mount }
  )

  // What anyone may call: no session is looked up.
  app.register(
    async scope => {
      scope.removeAllContentTypeParsers()
      scope.addHook('onRequest', checkOrigin)
      scope.addHook('onRequest', checkLimits)
      if (refuseClosed !== undefined) scope.addHook('onRequest', refuseClosed)
      await addRoutes(scope, access => access === 'public')
    },
    { prefix: mount }
  )

  if (gateway.console !== undefined)
    addConsole(app, {
      root: resolve(config.folder, gateway.console.root),
      prefix: mount,
      contentSecurityPolicy: gateway.console.contentSecurityPolicy
    })
  addUnknown(app, { checkLimits, mount, hasConsole: gateway.console !== undefined })
  await app.ready()
  return app
}

/**
 * An id from outside is taken only from a load balancer that we trust, and only if it is one: a
 * client that reached us past the load balancer must not choose what stands in our log.
 */
function requestId(
  trust?: (address: string) => boolean
): (request: Pick<IncomingMessage, 'headers' | 'socket'>) => string {
  return ({ headers, socket }) => {
    const id = headers['x-request-id']
    if (typeof id !== 'string' || trust?.(socket.remoteAddress ?? '') !== true) return randomUUID()
    return /^[A-Za-z0-9_.-]{8,64}$/.test(id) ? id : randomUUID()
  }
}
