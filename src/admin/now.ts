/** `/ops/api/now`: the present of this replica. */
import type { FastifyInstance } from 'fastify'
import { addOpsScope } from './api.ts'
import { type Now, nowSchema } from './now-schema.ts'

/** @param read cached for less than a second */
export function addNow(ops: FastifyInstance, read: () => Promise<Now>): void {
  addOpsScope(ops, scope => {
    scope.get(
      '/now',
      {
        schema: { summary: 'Requests, upstreams, process, Redis and replicas at present.' },
        config: { responds: nowSchema }
      },
      async () => await read()
    )
  })
}
