/** Operators' endpoints: shows the running config, and replaces it. */
import type { FastifyInstance } from 'fastify'
import type { Static } from 'typebox'
import { malformed } from '../app/hooks/validation.ts'
import { addAct } from './acts.ts'
import { addOpsScope, withAlias } from './api.ts'
import type { Operator } from './operator.ts'
import { planQuery, reloadBody, rollbackBody } from './request-schemas.ts'

/** Whether the operator accepts that most sessions of file users end. */
interface Confirmed {
  readonly yes: boolean
  readonly operator: Operator | undefined
}

interface Options {
  readonly status: () => Promise<object>
  readonly reload: (confirmed: Confirmed) => Promise<object>
  readonly rollback: (to: number | undefined, confirmed: Confirmed) => Promise<object>
  /** The changes that the files would make to the running config, or their faults. */
  readonly plan: (balancerMs: number) => Promise<object>
  /** The effect of a reload and of a rollback, in numbers. */
  readonly reloadEffect: () => Promise<object>
  readonly rollbackEffect: (to: number | undefined) => Promise<object>
}

export function addConfigRoutes(ops: FastifyInstance, options: Options): void {
  const { status, reload, rollback, plan, reloadEffect, rollbackEffect } = options
  const add = (scope: FastifyInstance) => {
    const summary = 'What runs: version, config, revisions, state.'
    scope.get('/status', { schema: { summary } }, async () => await status())
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
      preview: reloadEffect,
      run: ({ yes }, { operator }) => reload({ yes: yes === true, operator }),
      undo: 'Roll back to the revision before.'
    })
    addAct(scope, {
      path: '/rollback',
      kind: 'config.rollback',
      summary: 'Runs an earlier config again.',
      body: rollbackBody,
      hint: 'Give the number of a revision, {"to": NUMBER}, or none for the one before.',
      preview: ({ to }) => rollbackEffect(to),
      run: ({ to, yes }, { operator }) => rollback(to, { yes: yes === true, operator }),
      undo: 'Reload: the files still hold the config from before.'
    })
  }
  addOpsScope(ops, add, withAlias)
}
