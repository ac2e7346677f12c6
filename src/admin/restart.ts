/** `/ops/api/restart`: a new process takes the place of the one that runs. */
import type { FastifyInstance } from 'fastify'
import { addAct } from './acts.ts'
import { addOpsScope } from './api.ts'
import { restartBody } from './request-schemas.ts'

interface Options {
  readonly restart: () => Promise<object>
  /** In flight. */
  readonly requests: () => number
}

export function addRestart(ops: FastifyInstance, { restart, requests }: Options): void {
  addOpsScope(ops, scope => {
    addAct(scope, {
      path: '/restart',
      kind: 'gateway.restart',
      summary: 'Starts a new process, which takes all requests; this one finishes its own.',
      body: restartBody,
      preview: async () => ({ requests: requests() }),
      run: restart,
      undo: undefined
    })
  })
}
