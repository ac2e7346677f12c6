/**
 * The profile endpoint as the app needs it: from an upstream it is a proxied route, with parts an
 * aggregated one, and from the session alone an endpoint of the gateway.
 */
import type { Config } from '../../config/schema/config.ts'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import { profilePlacement, routeSettings } from '../../config/schema/resolved.ts'
import type { Contract } from '../../contract/contract.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import type { Parts } from '../../proxy/parts.ts'
import type { SessionTimes } from '../../session/describe.ts'
import type { Live } from '../../session/evaluate.ts'
import type { Answer } from '../../shaping/answer.ts'
import { fillCurrentUser } from '../../shaping/current-user.ts'
import type { Envelope } from '../../shaping/envelope.ts'
import type { Shape } from '../../shaping/shape.ts'
import type { Route, Shaping, Target } from './route.ts'
import { applyShape, checkContract } from './shaped-values.ts'

interface Options {
  readonly paths: readonly string[]
  readonly answer: Answer | undefined
  readonly contract: Contract | undefined
  readonly envelope: Envelope
  readonly shape: Shape | undefined
  readonly parts: Parts | undefined
  /** Undefined for a profile from the session. */
  readonly target: ProfileTarget | undefined
  readonly times: () => SessionTimes
}

type ProfileTarget = Pick<
  Target,
  'upstream' | 'upstreamName' | 'rewrite' | 'timeoutMs' | 'timeOuts'
>

type BodyOf = (user: unknown, live: Live) => unknown

export function compileProfile(config: Config, options: Options): Route {
  const { profile } = config.routes.endpoints
  const { paths, target, parts, answer, shape } = options
  const { errorStatus, maxBody, maxShaped, touch } = routeSettings(config, 'profile', profile)
  const bodyOf = createBody(config, options)
  const common = {
    name: ownRoutes.profile.name,
    paths,
    methods: profile.methods,
    touch,
    access: 'session',
    errorStatus
  } as const
  const shaping: Shaping = {
    shape: (user, live) =>
      live && bodyOf(shape === undefined ? user : applyShape(shape, user), live),
    shapeNothing: (nothing, live) => live && bodyOf(nothing, live),
    maxShaped,
    tooLarge: 'refuse',
    ...(parts && { parts })
  }
  if (target === undefined) {
    const status = parts === undefined ? (answer?.status ?? 200) : 200
    return {
      ...common,
      status,
      initialValue: live => live?.session.identity.profile,
      shaping: parts === undefined ? { shape: (user, live) => live && bodyOf(user, live) } : shaping
    }
  }
  return {
    ...common,
    shaping,
    target: {
      ...target,
      isReadOnly: true,
      maxBody,
      passAuthorization: false,
      passCookies: [],
      passRefusedHeaders: [],
      setCookies: [],
      redirects: 'refuse',
      touchesByStream: false
    }
  }
}

/** The whole body for a user, as the session or the upstream has it. */
function createBody(config: Config, { answer, contract, envelope, times }: Options): BodyOf {
  const placement = profilePlacement(config.routes)
  return (user, live) => {
    const { session, idleEnd } = live
    const value =
      answer === undefined
        ? fillCurrentUser(user, session.identity)
        : answer.render({ session, idleEnd, ...times(), profile: user })
    refuseLeak(value, session.credential, 'endpoints.profile')
    return checkContract(contract, envelope.success(value, undefined, placement))
  }
}
