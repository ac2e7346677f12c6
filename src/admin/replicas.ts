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
      requestsPerSecond: Type.Number({ description: 'Over the last ten seconds.' }),
      errorShare: Type.Number(),
      seenAt: time,
      isSilent: Type.Boolean({ description: 'It told nothing for more than 3 s.' })
    }),
    { description: 'The one that was asked first.' }
  ),
  info: Type.Optional(Type.String({ description: 'Why others are not known.' }))
})

export type ReplicasStatus = Static<typeof replicasStatus>

export function addReplicas(ops: FastifyInstance, status: () => Promise<object>): void {
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
