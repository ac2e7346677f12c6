/** The operators' listener and the Unix socket of local commands: servers in front of one app. */
import { randomUUID } from 'node:crypto'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import Fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
  type onRequestAsyncHookHandler
} from 'fastify'
import { openApi } from '../api-docs/openapi.ts'
import { createConnections, endStalledConnections } from '../app/connections.ts'
import { createTrust, readForwardedProto } from '../app/hooks/address.ts'
import { endAfterOffer } from '../app/hooks/upgrade.ts'
import { readJsonBodies, schemaController } from '../app/hooks/validation.ts'
import { createHttpServer, refuseUnparsed, sendRefusal, setCertificate } from '../app/listener.ts'
import type { ServerTls } from '../config/schema/config.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { type ErrorCode, errorKinds, toGatewayError } from '../errors/errors.ts'
import { adopt } from '../observability/emitters.ts'
import { version } from '../services/gateway-state.ts'
import { addApiDescription, type Desk } from './routes.ts'
import { partsOf } from './state.ts'

/** Also for answers to what is no request, which are written past Fastify. */
const opsHeaders: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  // Pages run nothing but their own.
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; " +
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY'
}

const maxBody = 64 * 1024
const timeouts = { requestTimeout: 30_000, keepAliveTimeout: 72_000 }
/** A client that takes nothing of its responses for this time loses its connection. */
const stallMs = 30_000
const maxConnections = 1000
const maxLocalConnections = 100
const graceMs = 2000

const localSockets = new WeakSet<Socket>()

/** `/healthz` never asks Redis: a restart of the gateway does not repair it. */
export function createOpsServer(desk: Desk, access: onRequestAsyncHookHandler): FastifyInstance {
  const { metrics, ledger, log, state, config } = desk
  const { trustedProxies, openMetrics } = config().gateway.ops
  const ops = Fastify({
    trustProxy: trustedProxies.length > 0 ? createTrust(trustedProxies) : false,
    bodyLimit: maxBody,
    schemaController,
    logController: new LogController({ disableRequestLogging: true }),
    exposeHeadRoutes: true,
    return503OnClosing: false,
    frameworkErrors: sendRouterError,
    genReqId: () => randomUUID()
  })
  if (trustedProxies.length > 0) readForwardedProto(ops)
  ops.decorate('actsTo', { ledger, log })
  ops.decorateRequest('operator', undefined)
  ops.decorateRequest('address', undefined)
  readJsonBodies(ops)
  ops.removeContentTypeParser('text/plain')
  ops.addHook('onError', async ({ id: requestId }, _reply, error) => {
    const { code, cause = error } = toGatewayError(error)
    if (code !== 'gateway.fault') return
    log.error({ requestId, err: cause }, 'internal error of the operators’ listener')
  })
  ops.addHook('onSend', async (request, reply) => {
    reply.header('x-request-id', request.id)
    for (const [name, value] of Object.entries(opsHeaders)) {
      if (!reply.hasHeader(name)) reply.header(name, value)
    }
  })
  ops.addHook('onRequest', access)
  ops.setErrorHandler(sendOpsError)
  addApiDescription(ops, version)
  ops.get('/healthz', () => ({ status: 'ok' }))
  const ofReadyz = { isOpen: true, isProbe: true }
  ops.get('/readyz', { config: ofReadyz }, async ({ operator }, reply) => {
    const current = state()
    const { ready } = current
    const status = ready ? 'ready' : 'not ready'
    const parts = operator === undefined ? {} : partsOf(current)
    return await reply.code(ready ? 200 : 503).send({ status, ...parts })
  })
  const ofMetrics = { isOpen: openMetrics, isProbe: true }
  ops.get('/metrics', { config: ofMetrics }, async (_request, reply) => {
    const { type, body } = await metrics.text()
    return reply.type(type).send(body)
  })
  ops.get('/openapi.json', { config: { isProbe: true } }, () => openApi(config()))
  ops.setNotFoundHandler(({ id }, reply) =>
    reply.code(404).send({
      error: 'There is nothing at this address. Try /healthz, /readyz, /metrics or /openapi.json.',
      code: 'route.unknown',
      requestId: id
    })
  )
  return ops
}

export function isLocal({ raw }: FastifyRequest): boolean {
  return localSockets.has(raw.socket)
}

/** @param trustedProxies may have all connections; another address gets a quarter of them */
export function createOpsListener(
  app: FastifyInstance,
  { tls, trustedProxies }: Pick<GatewayConfig['ops'], 'tls' | 'trustedProxies'>
) {
  const server = serve(app, tls)
  const local = serve(app, undefined).on('connection', socket => localSockets.add(socket))
  const connections = createConnections(maxConnections, trustedProxies)
  connections.add(server)
  local.maxConnections = maxLocalConnections
  return {
    server,
    local,
    setCertificate: (next: ServerTls): void => setCertificate(server, next),
    close: async (): Promise<void> => {
      const cut = setTimeout(() => {
        connections.destroyAll()
        local.closeAllConnections()
      }, graceMs).unref()
      await Promise.all([server, local].map(closed))
      clearTimeout(cut)
    }
  }
}

function serve(app: FastifyInstance, tls: ServerTls | undefined): Server {
  const server = createHttpServer(timeouts, tls)
  server.on('request', (request, response) => app.routing(request, response))
  endStalledConnections(server, stallMs)
  // No bound beside that of their size: Node would drop further headers silently.
  server.maxHeadersCount = 0
  server.prependListener('request', endAfterOffer)
  refuseUnparsed(server, refuse)
  return server
}

function refuse(socket: Socket, code: ErrorCode): void {
  const requestId = randomUUID()
  const { en: error } = errorKinds[code]
  const type = 'application/json; charset=utf-8'
  const headers = { ...opsHeaders, 'content-type': type, 'x-request-id': requestId }
  sendRefusal(adopt(socket), code, headers, { error, code, requestId })
}

function closed(server: Server): Promise<void> {
  return new Promise(resolve => void server.close(() => resolve()))
}

function sendOpsError(thrown: unknown, _request: unknown, reply: FastifyReply): FastifyReply {
  return reply.send({ ...prepareError(thrown, reply), requestId: reply.request.id })
}

export function prepareError(thrown: unknown, reply: FastifyReply) {
  const { status, code, detail } = toGatewayError(thrown)
  const { retryAfter, message } = detail
  if (retryAfter !== undefined) reply.header('retry-after', Math.ceil(retryAfter))
  reply.code(status)
  return { error: message ?? errorKinds[code].en, code }
}

/** Of a path that the router cannot read: no hook has seen the request. */
function sendRouterError(thrown: unknown, request: unknown, reply: FastifyReply): void {
  const headers = { ...opsHeaders, 'x-request-id': reply.request.id }
  sendOpsError(thrown, request, reply.headers(headers))
}
