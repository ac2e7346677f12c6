/** The profile from the session. (From an upstream, or with parts, it is another kind of route.) */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { withHead } from '../../config/schema/public-path.ts'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import { writeJson } from '../../json/body.ts'
import type { Live } from '../../session/evaluate.ts'
import { liveOf, sessionError } from '../hooks/session.ts'
import { ignoreBodies } from './ignored-bodies.ts'
import { sendJsonText } from './send-answer.ts'

export interface SessionProfile {
  readonly paths: readonly string[]
  readonly methods: readonly string[]
  readonly status: number
  /** The whole body; may throw a GatewayError. */
  readonly bodyOf: (user: unknown, live: Live) => unknown
}

export function addProfile(scope: FastifyInstance, profile: SessionProfile): void {
  const { paths, methods, status, bodyOf } = profile
  const config = { route: ownRoutes.profile.name, access: 'session' as const }
  scope.register(async inner => {
    ignoreBodies(inner)
    for (const url of paths) inner.route({ method: withHead(methods), url, config, handler: show })
  })

  async function show(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    const live = liveOf(request)
    if (live === undefined) throw sessionError(request)
    return sendJsonText(reply, status, writeJson(bodyOf(live.session.identity.profile, live)))
  }
}
