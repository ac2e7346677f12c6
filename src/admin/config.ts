/** Operators' endpoints: shows the running config, and replaces it. */
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
import { addAct } from './acts.ts'
import { addOpsScope } from './api.ts'
import type { Operator } from './operator.ts'
import { addReplicas, type ReplicasStatus } from './replicas.ts'
import { planQuery, reloadBody, rollbackBody } from './request-schemas.ts'

/** Whether the operator accepts that most sessions of file users end. */
interface Confirmed {
  readonly yes: boolean
  readonly operator: Operator | undefined
}

interface Options {
  readonly status: () => object
  readonly reload: (confirmed: Confirmed) => Promise<object>
  /** @param to the number of a revision, or the hash of its config */
  readonly rollback: (to: number | string | undefined, confirmed: Confirmed) => Promise<object>
  /** The changes that the files would make to the running config, or their faults. */
  readonly plan: (balancerMs: number) => Promise<object>
  /** The effect of a reload and of a rollback, in numbers. */
  readonly reloadEffect: () => Promise<object>
  readonly rollbackEffect: (to: number | string | undefined) => Promise<object>
  /** The same at all replicas. */
  readonly all: {
    readonly status: () => Promise<ReplicasStatus>
    readonly reload: (confirmed: Confirmed) => Promise<object>
    readonly reloadEffect: () => Promise<object>
    /** At all, or at none. */
    readonly rollback: (hash: string, confirmed: Confirmed) => Promise<object>
    readonly rollbackEffect: (hash: string) => Promise<object>
  }
}

export function addConfigRoutes(ops: FastifyInstance, options: Options): void {
  const { status, plan, all } = options
  const add = (scope: FastifyInstance) => {
    const summary = 'What runs: version, config, revisions, state.'
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
      preview: body => (body.all === true ? all : options).reloadEffect(),
      run: ({ yes, all: atAll }, { operator }) =>
        (atAll === true ? all : options).reload({ yes: yes === true, operator }),
      undo: 'Roll back to the revision before.'
    })
    addAct(scope, {
      path: '/rollback',
      kind: 'config.rollback',
      summary: 'Runs an earlier config again.',
      body: rollbackBody,
      hint:
        'Give the number of a revision, {"to": NUMBER}, or none for the one before; or the ' +
        'hash of its config, {"hash": "HASH"}, with {"all": true} for all replicas.',
      preview: ({ to, hash, all: atAll }) =>
        atAll === true && hash !== undefined
          ? all.rollbackEffect(hash)
          : options.rollbackEffect(hash ?? to),
      run: ({ to, hash, all: atAll, yes }, { operator }) => {
        const confirmed = { yes: yes === true, operator }
        return atAll === true && hash !== undefined
          ? all.rollback(hash, confirmed)
          : options.rollback(hash ?? to, confirmed)
      },
      undo: 'Reload: the files still hold the config from before.'
    })
  }
  addOpsScope(ops, add)
  addReplicas(ops, all.status)
}
