/** The operators' desk: what runs, and putting another config in its place. */
import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../errors.ts'
import { addBrowserGuard } from './browser-guard.ts'

/** Whether it is meant that most sessions of file users end. */
interface Confirmed {
  readonly yes: boolean
}

interface Options {
  readonly status: () => Promise<object>
  readonly reload: (confirmed: Confirmed) => Promise<object>
  readonly rollback: (to: number | undefined, confirmed: Confirmed) => Promise<object>
  /** What the files would change of what runs, or their faults. */
  readonly plan: (balancerMs: number) => Promise<object>
}

export function addConfigRoutes(ops: FastifyInstance, options: Options): void {
  const { status, reload, rollback, plan } = options
  ops.register(async scope => {
    addBrowserGuard(scope)
    scope.get('/status', async () => await status())
    scope.get('/plan', async request => {
      const { balancerMs = '60000' } = request.query as { balancerMs?: unknown }
      if (typeof balancerMs !== 'string' || !/^\d{1,12}$/.test(balancerMs)) {
        const message = 'Say it in milliseconds: /plan?balancerMs=60000'
        throw new GatewayError('request.malformed', { message })
      }
      return await plan(Number(balancerMs))
    })
    scope.post('/reload', async request => {
      const { yes } = (request.body ?? {}) as { yes?: unknown }
      return await reload({ yes: yes === true })
    })
    scope.post('/rollback', async request => {
      const { to, yes } = (request.body ?? {}) as { to?: unknown; yes?: unknown }
      if (to !== undefined && !Number.isInteger(to)) {
        throw new GatewayError('request.malformed', {
          message: 'Say to which revision: {"to": NUMBER}, or nothing for the one before.'
        })
      }
      return await rollback(to as number | undefined, { yes: yes === true })
    })
  })
}
