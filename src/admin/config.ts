/** Operators' endpoints: shows the running config, and replaces it. */
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
import { addAct } from './acts.ts'
import { addOpsScope } from './api.ts'
import type { Operator } from './operator.ts'
import { addReplicas } from './replicas.ts'
import { planQuery, reloadBody } from './request-schemas.ts'

/** Whether the operator accepts that most sessions of file users end. */
interface Confirmed {
  readonly yes: boolean
  readonly operator: Operator | undefined
}

interface Options {
  readonly status: () => object
  readonly reload: (confirmed: Confirmed) => Promise<object>
  /** The changes that the files would make to the running config, or their faults. */
  readonly plan: (balancerMs: number) => Promise<object>
  /** Who runs what. */
  readonly replicas: () => Promise<object>
}

export function addConfigRoutes(ops: FastifyInstance, options: Options): void {
  const { status, plan, reload, replicas } = options
  const add = (scope: FastifyInstance) => {
    const summary = 'What runs: version, config, state.'
    scope.get('/status', { schema: { summary } }, async () => status())
    scope.get<{ Querystring: Static<typeof planQuery> }>(
      '/plan',
      {
        schema: { summary: 'What the files would change.', querystring: planQuery },
        schemaErrorFormatter: malformed(
          'balancerMs is a number of milliseconds: /plan?balancerMs=60000'
        )
      },
      async ({ query }) => await plan(Number(query.balancerMs))
    )
    addAct(scope, {
      path: '/reload',
      kind: 'config.reload',
      summary: 'Reads the config files and runs their config.',
      body: reloadBody,
      run: ({ yes }, { operator }) => reload({ yes: yes === true, operator })
    })
  }
  addOpsScope(ops, add)
  addReplicas(ops, replicas)
}
