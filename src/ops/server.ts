/** The operators' listener, with liveness, readiness, metrics and OpenAPI. */
import { randomUUID } from 'node:crypto'
import Fastify, { LogController, type FastifyInstance } from 'fastify'
import { createTrust } from '../app/hooks/address.ts'
import { readForwardedProto } from '../app/hooks/address.ts'
import { readJsonBodies } from '../app/hooks/validation.ts'
import { schemaController } from '../app/hooks/validation.ts'
import type { GatewayConfig } from '../config/schema/gateway.ts'
import { toGatewayError } from '../errors/errors.ts'
import { addApiDescription } from './routes.ts'
import { type GatewayState, version } from '../services/gateway-state.ts'
import type { Services } from '../services/services.ts'
import type { createAccess } from './access.ts'
import { partsOf } from './health.ts'
import { opsHeaders, sendOpsError, sendRouterError } from './responses.ts'

interface Options {
  readonly state: () => GatewayState
  readonly openApi: () => object
  readonly access: ReturnType<typeof createAccess>
  readonly services: Pick<Services, 'metrics' | 'ledger' | 'log'>
  readonly ops: Pick<GatewayConfig['ops'], 'trustedProxies' | 'openMetrics'>
}

const maxBody = 64 * 1024

/** `/healthz` never asks Redis: a restart of the gateway does not repair it. */
export function createOpsServer(options: Options): FastifyInstance {
  const { state, openApi, access } = options
  const { metrics, ledger, log } = options.services
  const ops = createOpsApp(options.ops.trustedProxies)
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
  const ofMetrics = { isOpen: options.ops.openMetrics, isProbe: true }
  ops.get('/metrics', { config: ofMetrics }, async (_request, reply) => {
    const { type, body } = await metrics.text()
    return reply.type(type).send(body)
  })
  ops.get('/openapi.json', { config: { isProbe: true } }, () => openApi())
  ops.setNotFoundHandler(({ id }, reply) =>
    reply.code(404).send({
      error: 'There is nothing at this address. Try /healthz, /readyz, /metrics or /openapi.json.',
      code: 'route.unknown',
      requestId: id
    })
  )
  return ops
}

function createOpsApp(trustedProxies: readonly string[]): FastifyInstance {
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
  return ops
}
