/** Operators' endpoints: shows the running config, and replaces it. */
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
import { guardAdminScope } from './browser-guard.ts'
import { planQuery, reloadBody, rollbackBody } from './request-schemas.ts'

/** Whether the operator accepts that most sessions of file users end. */
interface Confirmed {
  readonly yes: boolean
}

interface Options {
  readonly status: () => Promise<object>
  readonly reload: (confirmed: Confirmed) => Promise<object>
  readonly rollback: (to: number | undefined, confirmed: Confirmed) => Promise<object>
  /** The changes that the files would make to the running config, or their faults. */
  readonly plan: (balancerMs: number) => Promise<object>
}

export function addConfigRoutes(ops: FastifyInstance, options: Options): void {
  const { status, reload, rollback, plan } = options
  ops.register(async scope => {
    guardAdminScope(scope)
    scope.get('/status', async () => await status())
    scope.get<{ Querystring: Static<typeof planQuery> }>(
      '/plan',
      {
        schema: { querystring: planQuery },
        schemaErrorFormatter: malformed(
          'balancerMs is a number of milliseconds: /plan?balancerMs=60000'
        )
      },
      async ({ query }) => await plan(Number(query.balancerMs))
    )
    scope.post<{ Body: Static<typeof reloadBody> }>(
      '/reload',
      { schema: { body: reloadBody } },
      async ({ body }) => await reload({ yes: body.yes === true })
    )
    scope.post<{ Body: Static<typeof rollbackBody> }>(
      '/rollback',
      {
        schema: { body: rollbackBody },
        schemaErrorFormatter: malformed(
          'Give the number of a revision, {"to": NUMBER}, or none for the one before.'
        )
      },
      async ({ body: { to, yes } }) => await rollback(to, { yes: yes === true })
    )
  })
}
