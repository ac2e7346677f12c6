/** Routes whose answer stands in config, without an upstream. Hooks check the request first. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { toRouterPath, withHead } from '../../config/schema/public-path.ts'
import { writeJson } from '../../json/body.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import type { Sessions } from '../../session/session.ts'
import type { Answer } from '../../shaping/answer.ts'
import type { Envelope } from '../../shaping/envelope.ts'
import type { Access } from '../hooks/context.ts'
import { liveOf } from '../hooks/session.ts'
import { sendJsonText } from './send-answer.ts'

export interface AnsweredRoute {
  readonly name: string
  /** The public path and its aliases. */
  readonly paths: readonly string[]
  readonly methods: readonly string[]
  readonly access: Access
  readonly touch: boolean
  readonly answer: Answer
  /** Of the route's dialect. */
  readonly envelope: Envelope
  readonly errorStatus: 'own' | 'ok'
}

/** Adds a route to a scope that ignores bodies. */
export function addAnswered(
  scope: FastifyInstance,
  route: AnsweredRoute,
  sessions: Pick<Sessions, 'times'>
): void {
  const { name, access, touch, envelope, errorStatus } = route
  const bodyFor = createBody(route, sessions)
  for (const path of route.paths) {
    scope.route({
      method: withHead(route.methods),
      url: toRouterPath(path),
      config: { route: name, access, touch, envelope, errorStatus },
      handler: (request: FastifyRequest, reply: FastifyReply) =>
        sendJsonText(reply, route.answer.status, bodyFor(request))
    })
  }
}

/** A constant body is written once, when the app is built. */
function createBody(
  { name, answer, envelope }: AnsweredRoute,
  sessions: Pick<Sessions, 'times'>
): (request: FastifyRequest) => string {
  const write = (value: unknown) => writeJson(envelope.success(value, undefined, answer.placement))
  if (answer.isConstant) {
    const text = write(answer.render())
    return () => text
  }
  return request => {
    const live = liveOf(request)
    // The guard has refused requests without a session.
    const value = answer.render(live && { ...live, ...sessions.times() })
    refuseLeak(value, live?.session.credential, `routes.${name}.answer`)
    return write(value)
  }
}
