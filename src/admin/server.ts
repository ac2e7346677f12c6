/** The operators' listener, with liveness, readiness, metrics and OpenAPI. */
import { randomUUID } from 'node:crypto'
import Fastify, { LogController, type FastifyInstance } from 'fastify'
import { dependenciesOf, partsOf } from './health.ts'
import type { createAccess } from './access.ts'
import { type createHostCheck, refuseAmbiguous } from './hosts.ts'
import { sendAdminError, sendRouterError } from './browser-guard.ts'
import { createTrust } from '../app/hooks/address.ts'
import { readForwardedProto } from '../app/hooks/forwarded-for.ts'
import { toGatewayError } from '../errors/errors.ts'
import { schemaController } from '../app/hooks/validation.ts'
import { readJsonBodies } from '../app/hooks/json-body.ts'
import type { ServerTls } from '../config/schema/config.ts'
import { graceMs, maxOpsBody, OpsServers } from './listener.ts'
import { opsHeaders } from './response-headers.ts'
import type { ActLedger } from '../ops/act-ledger.ts'
import { addApiDescription } from '../ops/routes.ts'
import type { GatewayState } from '../observability/gateway-state.ts'
import type { Metrics } from '../observability/metrics.ts'

declare module 'fastify' {
  interface FastifyInstance {
    setCertificate: (tls: ServerTls) => void
  }
}

interface Options {
  readonly state: () => GatewayState
  readonly metrics: Pick<Metrics, 'text'>
  /** The OpenAPI document of the config in force, as JSON. */
  readonly openApi: () => object
  readonly access: ReturnType<typeof createAccess>
  readonly checkHost?: ReturnType<typeof createHostCheck>
  readonly version: string
  readonly log: { readonly error: (fields: object, message: string) => void }
  /** The audit ledger, where config has one. */
  readonly ledger?: ActLedger | undefined
  readonly tls?: ServerTls | undefined
  /** `ops.trustedProxies`. */
  readonly trustedProxies?: readonly string[]
}

/**
 * `/healthz` never asks Redis: a restart of the gateway does not repair it. `/readyz` answers 503,
 * and shows operators the reasons. `/metrics` is for Prometheus, `/openapi.json` for console
 * developers.
 */
export function createAdminServer(options: Options): FastifyInstance {
  const { state, metrics, openApi, access, checkHost, version, ledger, log } = options
  const servers = new OpsServers(options.tls, options.trustedProxies ?? [])
  const ops = createOpsApp(servers, options)
  ops.decorate('setCertificate', tls => servers.setCertificate(tls))
  ops.decorate('ledger', ledger)
  ops.decorateRequest('operator', undefined)
  ops.decorateRequest('operatorSession', undefined)
  ops.decorateRequest('address', undefined)
  readJsonBodies(ops)
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
  ops.addHook('preClose', async () => {
    setTimeout(() => servers.destroyAll(), graceMs).unref()
  })
  if (checkHost !== undefined) {
    ops.addHook('onRequest', refuseAmbiguous)
    ops.addHook('onRequest', checkHost)
  }
  ops.addHook('onRequest', access)
  ops.setErrorHandler(sendAdminError)
  addApiDescription(ops, version)
  ops.get('/healthz', () => ({ status: 'ok' }))
  ops.get('/readyz', async ({ operator, query }, reply) => {
    const current = state()
    const { ready } = current
    const status = ready ? 'ready' : 'not ready'
    const isVerbose = Object.hasOwn(query as object, 'verbose')
    const body = {
      status,
      ...(operator !== undefined && partsOf(current)),
      ...(operator !== undefined && isVerbose && { dependencies: dependenciesOf(current) })
    }
    return await reply.code(ready ? 200 : 503).send(body)
  })
  ops.get('/metrics', async (_request, reply) => {
    const { type, body } = await metrics.text()
    return reply.type(type).send(body)
  })
  ops.get('/openapi.json', () => openApi())
  ops.setNotFoundHandler(({ id }, reply) =>
    reply.code(404).send({
      error: 'There is nothing at this address. Try /healthz, /readyz, /metrics or /openapi.json.',
      code: 'route.unknown',
      requestId: id
    })
  )
  return ops
}

function createOpsApp(servers: OpsServers, { trustedProxies = [] }: Options): FastifyInstance {
  const ops = Fastify({
    serverFactory: servers.create,
    // The listener answers.
    clientErrorHandler: () => {},
    trustProxy: trustedProxies.length > 0 ? createTrust(trustedProxies) : false,
    bodyLimit: maxOpsBody,
    schemaController,
    logController: new LogController({ disableRequestLogging: true }),
    exposeHeadRoutes: true,
    return503OnClosing: false,
    frameworkErrors: sendRouterError,
    genReqId: () => randomUUID()
  })
  if (trustedProxies.length > 0) readForwardedProto(ops)
  return ops
}
