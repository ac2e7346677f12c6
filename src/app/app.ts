/** The map: every hook in its order, every endpoint. Nothing else decides order. */
import { resolve } from 'node:path'
import cookie from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, onRequestHookHandler } from 'fastify'
import type { Config } from '../config/schema/config.ts'
import { toRouterPath } from '../config/schema/public-path.ts'
import { mountOf } from '../config/schema/resolved.ts'
import type { TrailAlias } from '../observability/trail.ts'
import { createTokenRefresh } from '../login/token-refresh.ts'
import { logoutAnswer } from './endpoint-answers.ts'
import { addCheck } from './endpoints/check.ts'
import { addConsole } from './endpoints/console.ts'
import { collectMethods } from './endpoints/known-paths.ts'
import { addLogin } from './endpoints/login.ts'
import { addLogout } from './endpoints/logout.ts'
import { addRefresh } from './endpoints/refresh.ts'
import { addSession } from './endpoints/session.ts'
import { addUnknown } from './endpoints/unknown.ts'
import { addAccessLog } from './hooks/access-log.ts'
import { addAudit, recordSignOut } from './hooks/audit.ts'
import { compileBodyFields } from './hooks/audit-fields.ts'
import { createCountedAddress } from './hooks/address.ts'
import { addCompression } from './hooks/compression.ts'
import { addCors, answerPreflights } from './hooks/cors.ts'
import { readForms, readJsonBodies } from './hooks/json-body.ts'
import { refuseUnderPressure } from './hooks/pressure.ts'
import { requestPolicy } from './hooks/request-policy.ts'
import { sameOrigin } from './hooks/same-origin.ts'
import { addSessionReader, addSessions } from './hooks/session.ts'
import { createSessionCookieReader } from './hooks/session-cookie.ts'
import { addSending, type StandardHeaders, standardHeaders } from './hooks/sending.ts'
import { addTokenRefresh } from './hooks/token-refresh.ts'
import { type Checks, createChecks } from './checks.ts'
import { compileRoutes, type Routes } from './routes/compile.ts'
import { addRoutes } from './routes/register.ts'
import { createCredentialTaking } from './routes/changed-credentials.ts'
import { EndedSessions } from './routes/ended-sessions.ts'
import { PublicPaths } from './routes/places.ts'
import type { Route } from './routes/route.ts'
import { type AppContext, createContext } from './context.ts'
import { createFastify } from './fastify.ts'
import type { GenerationServices } from './generation-services.ts'
import { createYield } from './yield.ts'

/**
 * Builds one generation. `services` outlive it: closing the app leaves them as they are.
 * @throws when it cannot be built; nothing is open then
 */
export async function buildApp(
  config: Config,
  services: GenerationServices
): Promise<FastifyInstance> {
  const context = createContext(config, services)
  const yieldToRequests = createYield()
  const profileAnswer = context.answers.profile
  const routes = await compileRoutes(config, services, profileAnswer, yieldToRequests)

  const headers = standardHeaders(config.gateway.session.cookie.secure)
  const app = createFastify(context, headers)
  services.watch?.(app)
  try {
    await addAll(app, { context, headers, routes, yieldToRequests })
    await app.ready()
    return app
  } catch (error) {
    await app.close()
    throw error
  }
}

interface AppParts extends Omit<Group, 'checks' | 'publicPaths'> {
  readonly headers: StandardHeaders
}

/** Hooks and endpoints, in their order. */
async function addAll(app: FastifyInstance, { headers, ...parts }: AppParts): Promise<void> {
  const { context } = parts
  const { config, services, hosts, mount } = context
  const { server, console: pages } = config.gateway
  readJsonBodies(app)
  const knownPaths = collectMethods(app)

  // Every request, in this order.
  addAccessLog(app, {
    log: services.log,
    requests: context.metrics.requests,
    running: services.running,
    tracer: services.tracer,
    toWall: services.sessions.toWall,
    aliases: aliasesOf(config),
    failures: services.failures
  })
  const { ledger } = services
  if (ledger !== undefined && config.gateway.audit !== undefined) {
    addAudit(app, ledger, compileBodyFields(config.gateway.audit))
  }
  addSending(app, { headers, stallMs: server.idleTimeout })
  if (server.compress) await addCompression(app)
  await addCors(app, server)
  const { name } = context.cookie
  await refuseUnderPressure(app, createSessionCookieReader({ name, secrets: services.secrets }))
  const { hidesNearer } = knownPaths
  app.addHook('onRequest', requestPolicy({ hosts, sizes: config.limits.sizes, hidesNearer }))
  answerPreflights(app, server)

  // Then each group of endpoints has hooks of its own.
  const checks = await createChecks(app, context)
  const groups = [addSignInEndpoints, addSessionEndpoints, addPublicEndpoints]
  const group = { ...parts, checks, publicPaths: new PublicPaths(parts.routes.routes) }
  for (const addGroup of groups) {
    app.register(scope => addGroup(scope, group), { prefix: mount })
  }
  if (pages !== undefined) {
    addConsole(app, {
      root: resolve(config.folder, pages.root),
      prefix: mount,
      contentSecurityPolicy: pages.contentSecurityPolicy
    })
  }
  const { checkLimits } = checks
  addUnknown(app, { knownPaths, checkLimits, mount, hasConsole: pages !== undefined })
}

interface Group {
  readonly context: AppContext
  readonly checks: Checks
  readonly routes: Routes
  readonly publicPaths: PublicPaths
  readonly yieldToRequests: () => Promise<void>
}

/** Endpoints that open and close sessions: the session plugin sets and clears the cookie. */
async function addSignInEndpoints(
  scope: FastifyInstance,
  { context, checks, routes }: Group
): Promise<void> {
  const { config, services, sources, cookie: sessionCookie, envelope, answers, metrics } = context
  const { gateway, limits } = config
  const expireTokenCookies = (reply: FastifyReply) => {
    for (const name of gateway.envelope.tokenCookies) reply.clearCookie(name, { path: '/' })
  }
  await scope.register(cookie, { hook: 'onRequest' })
  await addSessions(scope, sessionOptions(context))
  addOnRequest(scope, [checks.checkOrigin, checks.checkLimits, checks.guard, checks.refuseClosed])
  scope.removeContentTypeParser('text/plain')
  readForms(scope, gateway.login.fields.remember)
  addLogin(scope, {
    paths: routes.login,
    maxBody: limits.sizes.login,
    config: gateway.login,
    sources,
    signInGuard: checks.signInGuard,
    sessions: services.sessions,
    cookie: sessionCookie,
    expireTokenCookies,
    envelope,
    answer: answers.login,
    onOutcome: metrics.onSignIn,
    sealedCookies: context.sealedCookies,
    tokenNames: context.tokenNames
  })
  addLogout(scope, {
    paths: routes.logout,
    methods: config.routes.endpoints.logout.methods,
    answer: logoutAnswer(context),
    sources,
    sessions: services.sessions,
    cookie: sessionCookie,
    expireTokenCookies,
    checkOrigin: sameOrigin(gateway.server.origins, { always: true }),
    onSignedOut: (request, session, code) => {
      if (services.ledger !== undefined) recordSignOut(services.ledger, request, session, code)
    }
  })
}

/** Endpoints that only read the session: the gateway's own, and back-ends' behind a sign-in. */
async function addSessionEndpoints(scope: FastifyInstance, group: Group): Promise<void> {
  const { context, checks, routes } = group
  const { config, services, sources, cookie: sessionCookie, envelope, answers } = context
  // The session's is the only cookie that is read, or cleared: no hook parses them all.
  await scope.register(cookie, { hook: false })
  addSessionReader(scope, sessionOptions(context))
  addOnRequest(scope, [checks.checkOrigin, checks.checkLimits, checks.guard, checks.refuseClosed])
  scope.removeContentTypeParser('text/plain')
  addSession(scope, {
    paths: routes.session,
    sessions: services.sessions,
    cookie: sessionCookie,
    envelope
  })
  addRefresh(scope, {
    paths: routes.refresh,
    policy: config.routes.endpoints.refresh?.extendsIdle ?? 'after-use',
    sessions: services.sessions,
    answer: answers.refresh,
    envelope,
    sendsTimeLeft: config.gateway.session.headers
  })
  addCheck(scope, {
    paths: routes.check,
    identity: config.gateway.identity,
    origins: config.gateway.server.origins
  })
  const ofSession = routes.routes.filter(({ access }) => access !== 'public')
  await addRoutesOf(
    scope,
    group,
    ofSession.filter(route => !asksBackEnds(route))
  )
  scope.register(async inner => {
    inner.removeAllContentTypeParsers()
    addTokenRefresh(
      inner,
      createTokenRefresh({
        sessions: services.sessions,
        sources,
        onFailed: err =>
          services.log.warn(
            { err },
            'could not renew a back-end’s token; the current one is valid for a short time still'
          )
      }),
      services.sessions
    )
    await addRoutesOf(inner, group, ofSession.filter(asksBackEnds))
  })
}

/** Back-ends' endpoints that anyone may call: no session is looked up. */
async function addPublicEndpoints(scope: FastifyInstance, group: Group): Promise<void> {
  const { checks, routes } = group
  scope.removeAllContentTypeParsers()
  addOnRequest(scope, [checks.checkOrigin, checks.checkLimits, checks.refuseClosed])
  await addRoutesOf(
    scope,
    group,
    routes.routes.filter(({ access }) => access === 'public')
  )
}

/** Whether it needs the credential of the session, which is renewed before. */
function asksBackEnds({ target, shaping }: Route): boolean {
  return target !== undefined || shaping?.parts !== undefined
}

async function addRoutesOf(
  scope: FastifyInstance,
  { context, yieldToRequests, publicPaths }: Group,
  routes: readonly Route[]
): Promise<void> {
  const { config, services, forwardedHost, metrics, tokenNames, sealedCookies } = context
  const { bindStream, running, inFlight, log } = services
  const options = {
    identity: config.gateway.identity,
    tokenNames,
    bindStream,
    sealedCookies,
    forwardedHost,
    countMissing: metrics.onMissingPart,
    publicPaths,
    endedSessions: new EndedSessions(services.sessions),
    takeCredential: createCredentialTaking(config, services.sessions),
    webSockets: {
      origins: config.gateway.server.origins,
      bindStream,
      running,
      tokenNames,
      inFlight,
      addressOf: createCountedAddress(config.limits.ipv6Prefix),
      onRefused: metrics.onRefused,
      log
    }
  }
  await addRoutes(scope, routes, options, yieldToRequests)
}

/** Adds hooks in their order; one that is not configured is undefined. */
function addOnRequest(
  scope: FastifyInstance,
  hooks: ReadonlyArray<onRequestHookHandler | undefined>
): void {
  for (const hook of hooks) if (hook !== undefined) scope.addHook('onRequest', hook)
}

/** The aliases, by their paths as the router has them. */
function aliasesOf(config: Config): Map<string | undefined, TrailAlias> {
  const mount = mountOf(config)
  return new Map(
    Object.entries(config.routes.aliases).map(([path, target]) => [
      mount + toRouterPath(path),
      { path, target }
    ])
  )
}

function sessionOptions({ services, cookie: sessionCookie }: AppContext) {
  return { sessions: services.sessions, cookie: sessionCookie, secrets: services.secrets }
}
