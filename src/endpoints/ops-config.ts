/** The operators' desk: what runs, and putting another config in its place. */
import type { FastifyInstance } from 'fastify'
import { GatewayError } from '../errors.ts'
import { addDeskRules } from '../hooks/desk.ts'

interface Options {
  readonly status: () => Promise<object>
  readonly reload: (confirmed: { readonly yes: boolean }) => Promise<object>
  readonly rollback: (to: number | undefined) => Promise<object>
}

export function addOpsConfig (ops: FastifyInstance, { status, reload, rollback }: Options): void {
  ops.register(async scope => {
    addDeskRules(scope)
    scope.get('/status', async () => await status())
    scope.post('/reload', async request => {
      const { yes } = (request.body ?? {}) as { yes?: unknown }
      return await reload({ yes: yes === true })
    })
    scope.post('/rollback', async request => {
      const { to } = (request.body ?? {}) as { to?: unknown }
      if (to !== undefined && !Number.isInteger(to)) throw new GatewayError('request.malformed', { message: 'Say to which revision: {"to": NUMBER}, or nothing for the one before.' })
      return await rollback(to as number | undefined)
    })
  })
}
