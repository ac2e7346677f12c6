/** The operators' listener, with liveness, readiness, metrics and OpenAPI. */
import { randomUUID } from 'node:crypto'
import Fastify, { LogController, type FastifyInstance } from 'fastify'
import type { ActLedger } from './acts.ts'
import { addApiDescription } from './api.ts'
import type { Guard } from './guard.ts'
import type { createHostCheck } from './hosts.ts'
import { sendAdminError } from './browser-guard.ts'
import { readJsonBodies } from '../app/hooks/json-body.ts'
import type { Metrics } from '../observability/metrics.ts'
import { forwarded, takeForwarded } from './forwarded.ts'
import { formatFor } from '../observability/metrics-text.ts'
import { adopt } from '../observability/emitters.ts'

export interface Readiness {
  readonly ready: boolean
  /** The state of each part, for people. */
  readonly parts: Readonly<Record<string, string>>
  /** The addresses of upstreams, for operators. */
  readonly upstreams?: readonly AddressStatus[]
}

interface AddressStatus {
  readonly upstream: string
  readonly address: string
  readonly state: string
  readonly inFlight: number
}

interface Options {
  readonly readiness: () => Promise<Readiness>
  readonly metrics: Pick<Metrics, 'text'>
  /** The OpenAPI document of the config in force. */
  readonly openApi: () => object
  /** `checked elsewhere` in a worker: the primary has checked the request with its own guard. */
  readonly guard: Guard | 'checked elsewhere'
  readonly checkHost?: ReturnType<typeof createHostCheck>
  readonly version: string
  /** The audit ledger, where config has one. */
  readonly ledger?: ActLedger | undefined
}

/**
 * `/healthz` never asks Redis: a restart of the gateway does not repair it. `/readyz` answers 503,
 * and shows operators the reasons. `/metrics` is for Prometheus, `/openapi.json` for console
 * developers.
 */
export function createAdminServer({
  readiness,
  metrics,
  openApi,
  guard,
  checkHost,
  version,
  ledger
}: Options): FastifyInstance {
  const ops = Fastify({
    logController: new LogController({ disableRequestLogging: true }),
    exposeHeadRoutes: true,
    return503OnClosing: false,
    genReqId: () => forwarded.getStore()?.requestId ?? randomUUID()
  })
  adopt(ops.server)
  ops.decorate('ledger', ledger)
  ops.decorateRequest('operator', undefined)
  readJsonBodies(ops)
  ops.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })
  if (checkHost !== undefined) ops.addHook('onRequest', checkHost)
  ops.addHook('onRequest', guard === 'checked elsewhere' ? takeForwarded : guard.check)
  ops.setErrorHandler(sendAdminError)
  addApiDescription(ops, version)
  ops.get('/healthz', () => ({ status: 'ok' }))
  ops.get('/readyz', async (request, reply) => {
    const { ready, parts } = await readiness()
    const status = ready ? 'ready' : 'not ready'
    const mayKnow = guard === 'checked elsewhere' || guard.isOperator(request.headers)
    return await reply.code(ready ? 200 : 503).send(mayKnow ? { status, ...parts } : { status })
  })
  ops.get('/metrics', async (request, reply) => {
    const { type, body } = await metrics.text(formatFor(request.headers.accept))
    return reply.header('vary', 'accept').type(type).send(body)
  })
  ops.get('/openapi.json', () => openApi())
  ops.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({
      error: 'There is nothing at this address. Try /healthz, /readyz, /metrics or /openapi.json.'
    })
  )
  return ops
}
