/**
 * The subject of a contract in a response: the value, or the whole body that the console gets.
 */
import type { Config } from '../config/schema/config.ts'
import { profilePlacement } from '../config/schema/resolved.ts'
import { CommandError } from './command.ts'
import { compileAnswer } from '../shaping/answer.ts'
import { fillCurrentUser } from '../shaping/current-user.ts'
import type { Envelope } from '../shaping/envelope.ts'
import type { Session } from '../session/record.ts'

/** @param which names the response in a message */
export type SubjectOf = (body: unknown, which: string) => unknown

/** Of a shaped response of the route, or of the profile as the console gets it. */
export function routeSubject(isWrapped: boolean, { dataName }: Envelope): SubjectOf {
  return (body, which) => (isWrapped ? dataOf(body, dataName, which) : body)
}

/** Of the whole response of the profile endpoint. */
export function profileSubject({ routes }: Config, envelope: Envelope): SubjectOf {
  return routeSubject(profilePlacement(routes) === 'data', envelope)
}

/** A user who is nobody: the types of the members are what matters. */
const session: Session = {
  id: '',
  identity: { id: '', username: '', name: '', roles: [], profile: {} },
  source: '',
  remembered: false,
  createdAt: 0,
  absoluteEnd: 0,
  idleMs: 0,
  address: '',
  agent: ''
}

/** The whole response of the profile endpoint for a user whom the upstream has sent. */
export function profileBody(
  { gateway, routes }: Config,
  { success }: Envelope
): (user: unknown) => unknown {
  const { answer } = routes.endpoints.profile
  const { inertToken } = gateway.envelope
  const { permissions } = routes
  const rendered = answer && compileAnswer(answer, { inertToken, permissions })
  return user => {
    const value =
      rendered === undefined
        ? fillCurrentUser(user, session.identity)
        : rendered.render({ session, idleEnd: 0, now: 0, aheadMs: 0, profile: user })
    return success(value, undefined, profilePlacement(routes))
  }
}

function dataOf(response: unknown, dataName: Envelope['dataName'], which: string): unknown {
  if (dataName === false) return response
  if (typeof response === 'object' && response !== null && Object.hasOwn(response, dataName)) {
    return (response as Record<string, unknown>)[dataName]
  }
  throw new CommandError(
    `${which} is not a response of the gateway: it has no member "${dataName}".`
  )
}
