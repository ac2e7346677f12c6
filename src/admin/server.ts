/** The operators' listener: is the process alive, may it get traffic. */
import Fastify, { LogController, type FastifyInstance } from 'fastify'
import type { Guard } from './guard.ts'
import type { createHostCheck } from './hosts.ts'
import { sendAdminError } from './browser-guard.ts'
import { readJsonBodies } from '../app/hooks/json-body.ts'
import type { Metrics } from '../observability/metrics.ts'
import { adopt } from '../observability/emitters.ts'

export interface Readiness {
  readonly ready: boolean
  /** Each part and how it is, for people. */
  readonly parts: Readonly<Record<string, string>>
}

interface Options {
  readonly readiness: () => Promise<Readiness>
  readonly metrics: Pick<Metrics, 'text'>
  /** The public interface, of the config that is in force. */
  readonly openApi: () => object
  /** `checked elsewhere` in a worker, which only the first process asks, after its own guard. */
  readonly guard: Guard | 'checked elsewhere'
  readonly checkHost?: ReturnType<typeof createHostCheck>
}

/**
 * `/healthz` never asks Redis: restarting the gateway does not mend it. `/readyz` says 503, and to
 * operators the reasons. `/metrics` is for Prometheus, `/openapi.json` for console developers.
 */
export function createAdminServer({
  readiness,
  metrics,
  openApi,
  guard,
  checkHost
}: Options): FastifyInstance {
  const ops = Fastify({
    logController: new LogController({ disableRequestLogging: true }),
    exposeHeadRoutes: true,
    return503OnClosing: false
  })
  adopt(ops.server)
  readJsonBodies(ops)
  ops.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store')
  })
  if (checkHost !== undefined) ops.addHook('onRequest', checkHost)
  if (guard !== 'checked elsewhere') ops.addHook('onRequest', guard.check)
  ops.setErrorHandler(sendAdminError)
  ops.get('/healthz', () => ({ status: 'ok' }))
  ops.get('/readyz', async (request, reply) => {
    const { ready, parts } = await readiness()
    const status = ready ? 'ready' : 'not ready'
    const mayKnow = guard === 'checked elsewhere' || guard.isOperator(request.headers)
    return await reply.code(ready ? 200 : 503).send(mayKnow ? { status, ...parts } : { status })
  })
  ops.get('/metrics', async (_request, reply) => {
    const { type, body } = await metrics.text()
    return reply.type(type).send(body)
  })
  ops.get('/openapi.json', () => openApi())
  ops.setNotFoundHandler((_request, reply) =>
    reply.code(404).send({
      error: 'There is nothing at this address. Try /healthz, /readyz, /metrics or /openapi.json.'
    })
  )
  return ops
}
