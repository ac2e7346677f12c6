/** `/ops/api/now`: the present of this replica, once or as a live stream. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { addOpsScope } from './api.ts'
import { StateStreams } from './state-stream.ts'
import { type Now, nowSchema } from './now-schema.ts'

interface Options {
  /** Cached for less than a second: all who watch share it. */
  readonly read: () => Promise<Now>
  /** Whether the request's operator may still watch. */
  readonly isAllowed: (request: FastifyRequest) => Promise<boolean>
}

export function addNow(ops: FastifyInstance, { read, isAllowed }: Options): void {
  const streams = new StateStreams({ name: 'now', read, isAllowed })
  streams.endWith(ops)
  addOpsScope(ops, scope => {
    scope.get(
      '/now',
      {
        schema: { summary: 'Requests, upstreams, process, Redis and replicas at present.' },
        config: { responds: nowSchema }
      },
      async () => await read()
    )
    scope.get(
      '/now/stream',
      {
        schema: {
          summary: 'The same once a second, as server-sent events.',
          description:
            'Each event is called `now`; its data is the JSON of `/ops/api/now`. A reader that is ' +
            'too slow misses events. An event `end` says that the operator is signed out, or that ' +
            'the gateway stops.'
        }
      },
      async (request, reply) => {
        await streams.open(request, reply)
        return reply
      }
    )
  })
}
