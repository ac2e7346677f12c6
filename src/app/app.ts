/** The map: every hook in its order, every endpoint. Nothing else decides order. */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import Fastify, { type FastifyInstance, LogController } from 'fastify'
import cookie from '@fastify/cookie'
import type { Config } from '../config/schema/config.ts'
import { loadModules } from '../shaping/module.ts'
import { addConsole } from './endpoints/console.ts'
import { addBodiless, addJwks } from './endpoints/own.ts'
import { addProviderLogout } from './endpoints/provider-logout.ts'
import { addCheck, addLogout, addRefresh, addSession } from './endpoints/session.ts'
import { addUnknown, collectMethods, type KnownPaths } from './endpoints/unknown.ts'
import { createGateway, type Gateway, type GatewayServices } from './gateway.ts'
import { addAccessLog } from './hooks/access-log.ts'
import { createTrust, readForwardedProto } from './hooks/address.ts'
import { addAudit } from './hooks/audit.ts'
import type { RequestHook } from './hooks/context.ts'
import { createErrorHandler } from './hooks/errors.ts'
import { createGuard, createMaintenance } from './hooks/guard.ts'
import { createLimits } from './hooks/limits.ts'
import {
  maxHeaderSize,
  readable,
  redirectToHttps,
  refuseUnderPressure,
  requestPolicy
} from './hooks/request-policy.ts'
import { sameOrigin } from './hooks/same-origin.ts'
import { addCompression, addCors, addSending } from './hooks/sending.ts'
import { addSessionReader, addSessions } from './hooks/session.ts'
import { readForms, readJsonBodies, schemaController } from './hooks/validation.ts'
import { compileRoutes, type Route } from './routes/compile.ts'
import { addForwarded, addOwnRoute } from './routes/handler.ts'
import { addOidc } from './sign-in/flows.ts'
import { addLogin } from './sign-in/login.ts'

/** `services` outlive the app. @throws when it cannot be built; nothing is open then */
export async function buildApp(config: Config, services: GatewayServices) {
  const gateway = createGateway(config, services, await loadModules(config))
  const routes = await compileRoutes(gateway)
  const app = createFastify(gateway)
  app.decorate('routes', routes)
  try {
    await addAll(app)
    await app.ready()
    return app
  } catch (error) {
    await app.close()
    throw error
  }
}

async function addAll(app: FastifyInstance): Promise<void> {
  const { gateway } = app
  readJsonBodies(app)
  const knownPaths = collectMethods(app)

  // Every request, in this order.
  addAccessLog(app)
  addAudit(app)
  addSending(app)
  await addCompression(app)
  await addCors(app)
  await refuseUnderPressure(app)
  app.addHook('onRequest', requestPolicy(gateway, knownPaths.hidesNearer))
  if (gateway.config.gateway.server.tls?.redirect !== undefined) {
    app.addHook('onRequest', redirectToHttps(gateway))
  }

  // Then each group of endpoints, after hooks of its own.
  const checkLimits = await createLimits(app)
  const checkOrigin = sameOrigin(gateway.config.gateway.server.origins)
  const refuseClosed = createMaintenance(gateway)
  const ofPublic = [checkOrigin, checkLimits, refuseClosed]
  const ofSession = [checkOrigin, checkLimits, createGuard(gateway), refuseClosed]
  const { mount: prefix } = gateway
  app.register(scope => addSignIn(scope, ofSession, knownPaths), { prefix })
  app.register(scope => addBehindSession(scope, ofSession), { prefix })
  app.register(scope => addPublic(scope, ofPublic), { prefix })
  addConsole(app)
  addUnknown(app, knownPaths, checkLimits)
}

/** Endpoints that open and close sessions: the session plugin sets and clears the cookie. */
async function addSignIn(scope: FastifyInstance, hooks: RequestHook[], knownPaths: KnownPaths) {
  await scope.register(cookie, { hook: 'onRequest' })
  await addSessions(scope)
  addHooks(scope, hooks)
  scope.removeContentTypeParser('text/plain')
  readForms(scope, scope.gateway.config.gateway.login.fields.remember)
  addLogin(scope)
  addOidc(scope, path => knownPaths.methodsAt(path) !== undefined)
  addBodiless(scope, addLogout)
}

/** Endpoints that only read the session: the gateway's own, and back-ends' behind a sign-in. */
async function addBehindSession(scope: FastifyInstance, hooks: RequestHook[]): Promise<void> {
  // The session's is the only cookie that is read, or cleared: no hook parses them all.
  await scope.register(cookie, { hook: false })
  addSessionReader(scope)
  addHooks(scope, hooks)
  scope.removeContentTypeParser('text/plain')
  addSession(scope)
  addBodiless(scope, addRefresh)
  addBodiless(scope, addCheck)
  scope.register(inner => addRoutes(inner, ({ access }) => access !== 'public'))
}

/** Back-ends' endpoints that anyone may call: no session is looked up. */
async function addPublic(scope: FastifyInstance, hooks: RequestHook[]): Promise<void> {
  addHooks(scope, hooks)
  scope.removeAllContentTypeParsers()
  addBodiless(scope, addJwks)
  addProviderLogout(scope)
  scope.register(inner => addRoutes(inner, ({ access }) => access === 'public'))
}

async function addRoutes(scope: FastifyInstance, isHere: (route: Route) => boolean): Promise<void> {
  const routes = scope.routes.filter(isHere)
  scope.removeAllContentTypeParsers()
  addBodiless(scope, inner => {
    for (const route of routes) if (route.target === undefined) addOwnRoute(inner, route)
  })
  await addForwarded(scope, routes)
}

function addHooks(scope: FastifyInstance, hooks: RequestHook[]): void {
  for (const hook of hooks) scope.addHook('onRequest', hook)
}

function createFastify(gateway: Gateway): FastifyInstance {
  const { config, log } = gateway
  const { trustedProxies } = config.gateway.server
  const trust = trustedProxies.length > 0 ? createTrust(trustedProxies) : undefined
  const requestIdLogLabel = 'requestId'
  const app = Fastify({
    // Without a logger of its own, Fastify listens to responses only where an onResponse hook is.
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel }),
    trustProxy: trust ?? false,
    childLoggerFactory: (_none, bindings) => log.child(bindings),
    requestIdHeader: false,
    genReqId: requestId(trust),
    exposeHeadRoutes: false,
    bodyLimit: config.limits.sizes.body,
    schemaController,
    rewriteUrl: ({ url = '' }) => readable(url),
    routerOptions: { maxParamLength: maxHeaderSize },
    // A build yields to requests, so plugins may take their time.
    pluginTimeout: 0
  })
  app.log = log
  app.decorate('gateway', gateway)
  if (trust !== undefined) readForwardedProto(app)
  app.setErrorHandler(createErrorHandler(gateway))
  return app
}

/** A client that bypasses the load balancer must not choose the id that stands in the log. */
function requestId(trust?: (address: string) => boolean) {
  return ({ headers, socket }: Pick<IncomingMessage, 'headers' | 'socket'>): string => {
    const id = headers['x-request-id']
    if (typeof id !== 'string' || trust?.(socket.remoteAddress ?? '') !== true) return randomUUID()
    return /^[A-Za-z0-9_.-]{8,64}$/.test(id) ? id : randomUUID()
  }
}
