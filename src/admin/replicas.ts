/** `/ops/api/replicas`: who runs what. */
import type { FastifyInstance } from 'fastify'
import { type Static, Type } from 'typebox'
import { addOpsScope } from './api.ts'

const time = Type.String({ format: 'date-time' })
const named = { id: Type.String(), host: Type.String(), version: Type.String() }
const replicasStatus = Type.Object({
  replicas: Type.Array(
    Type.Object({
      ...named,
      pid: Type.Integer(),
      startedAt: time,
      ready: Type.Boolean(),
      generation: Type.Integer(),
      configHash: Type.String({ description: 'The same for the same config at all replicas.' }),
      files: Type.String({ description: 'running or refused.' }),
      since: Type.Optional(time),
      fault: Type.Optional(Type.String({ description: 'The first, of refused files.' })),
      restartNeeded: Type.Array(Type.String()),
      seenAt: time
    }),
    { description: 'The one that was asked first.' }
  ),
  silent: Type.Array(Type.Object({ ...named, seenAt: Type.String() }), {
    description: 'Replicas that were seen within 10 s, and did not answer.'
  }),
  info: Type.Optional(Type.String({ description: 'Why other replicas could not be asked.' }))
})

export type ReplicasStatus = Static<typeof replicasStatus>

export function addReplicas(ops: FastifyInstance, status: () => Promise<ReplicasStatus>): void {
  addOpsScope(ops, scope => {
    scope.get(
      '/replicas',
      {
        schema: { summary: 'All replicas: host, version, config, faults.' },
        config: { responds: replicasStatus }
      },
      async () => await status()
    )
  })
}
