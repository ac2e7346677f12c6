/**
 * Routes without an upstream of their own: parts, added to an empty object or the profile.
 */
import { toRouterPath, withHead } from '../../config/schema/public-path.ts'
import type { FastifyInstance } from 'fastify'
import type { Envelope } from '../../shaping/envelope.ts'
import { toGatewayError } from '../../errors.ts'
import type { Access } from '../hooks/context.ts'
import { liveSession } from '../hooks/session.ts'
import type { Session } from '../../session/record.ts'
import { type MergingShaping, type PartsOptions, fetchParts } from './pending-parts.ts'
import { sendOnceGathered } from './shaped.ts'

export interface AggregatedRoute {
  readonly name: string
  /** The public path and its aliases. */
  readonly paths: readonly string[]
  readonly methods: readonly string[]
  readonly access: Access
  readonly touch: boolean
  /** The value that the parts are added to. */
  readonly initialValue: (session: Session | undefined) => unknown
  readonly shaping: MergingShaping
  readonly envelope?: Envelope
  readonly errorStatus: 'own' | 'ok'
}

/** Adds a route to a scope that ignores bodies, and whose hooks check the request first. */
export function addAggregated(
  scope: FastifyInstance,
  route: AggregatedRoute,
  options: PartsOptions
): void {
  const { name, paths, methods, access, touch, initialValue, shaping, envelope, errorStatus } =
    route
  for (const path of paths) {
    scope.route({
      method: withHead(methods),
      url: toRouterPath(path),
      config: {
        route: name,
        access,
        touch,
        ...(envelope && { envelope }),
        errorStatus
      },
      handler: (_request, reply) => {
        const pendingParts = fetchParts(reply, name, shaping, options)
        pendingParts.catch((error: unknown) => {
          if (!reply.raw.closed && !reply.sent) reply.send(toGatewayError(error))
        })
        const value = initialValue(liveSession(reply.request))
        sendOnceGathered(reply, value, shaping, pendingParts)
        return reply
      }
    })
  }
}
