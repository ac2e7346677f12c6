/**
 * The profile endpoint as the app needs it: from an upstream it is a proxied route, with parts an
 * aggregated one, and from the session alone an endpoint of the gateway.
 */
import type { Config } from '../config/schema/config.ts'
import { ownRoutes } from '../config/schema/own-endpoints.ts'
import { pathsOf, profilePlacement, routeSettings } from '../config/schema/resolved.ts'
import type { Contract } from '../contract/contract.ts'
import { refuseLeak } from '../login/leaked-credential.ts'
import type { Parts } from '../proxy/parts.ts'
import type { SessionTimes } from '../session/describe.ts'
import type { Live } from '../session/evaluate.ts'
import type { Answer } from '../shaping/answer.ts'
import { fillCurrentUser } from '../shaping/current-user.ts'
import type { Envelope } from '../shaping/envelope.ts'
import type { Shape } from '../shaping/shape.ts'
import type { AggregatedRoute } from './endpoints/aggregated.ts'
import type { SessionProfile } from './endpoints/profile.ts'
import type { ProxiedRoute } from './endpoints/proxied.ts'
import { applyShape, checkContract } from './shaped-values.ts'

type Target = Pick<
  ProxiedRoute,
  'paths' | 'upstream' | 'upstreamName' | 'upstreamPath' | 'timeoutMs' | 'timeOuts'
>

interface Options {
  readonly answer: Answer | undefined
  readonly contract: Contract | undefined
  readonly envelope: Envelope
  readonly shape: Shape | undefined
  readonly parts: Parts | undefined
  /** Undefined for a profile from the session. */
  readonly target: Target | undefined
  readonly times: () => SessionTimes
}

interface CompiledProfile {
  /** Without paths where another kind of route answers. */
  readonly session: SessionProfile
  readonly proxied?: ProxiedRoute
  readonly aggregated?: AggregatedRoute
}

export function compileProfile(config: Config, options: Options): CompiledProfile {
  const { profile } = config.routes.endpoints
  const { target, parts, answer } = options
  const { errorStatus, maxBody, maxShaped, touch } = routeSettings(config, 'profile', profile)
  const bodyOf = createBody(config, options)
  const shaping = {
    shape: shapeWith(options.shape, bodyOf),
    shapeNothing: (nothing: null, live: Live | undefined) => live && bodyOf(nothing, live),
    maxShaped,
    tooLarge: 'refuse'
  } as const
  const common = {
    name: ownRoutes.profile.name,
    paths: pathsOf(config.routes, profile.path),
    methods: profile.methods,
    touch,
    access: 'session',
    errorStatus
  } as const
  const session = { paths: [], methods: profile.methods, status: answer?.status ?? 200, bodyOf }
  if (target !== undefined) {
    const proxied: ProxiedRoute = {
      ...common,
      ...target,
      shaping: { ...shaping, ...(parts && { parts }) },
      isReadOnly: true,
      maxBody,
      passAuthorization: false,
      passCookies: [],
      passRefusedHeaders: [],
      setCookies: [],
      redirects: 'refuse',
      touchesByStream: false
    }
    return { session, proxied }
  }
  if (parts === undefined) return { session: { ...session, paths: common.paths } }
  const aggregated = {
    ...common,
    initialValue: (live: Live['session'] | undefined) => live?.identity.profile,
    shaping: { ...shaping, parts }
  }
  return { session, aggregated }
}

/** The whole body for a user, as the session or the upstream has it. */
function createBody(
  config: Config,
  { answer, contract, envelope, times }: Options
): SessionProfile['bodyOf'] {
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

function shapeWith(shape: Shape | undefined, bodyOf: SessionProfile['bodyOf']) {
  return (body: unknown, live: Live | undefined) => {
    if (live === undefined) return null
    return bodyOf(shape === undefined ? body : applyShape(shape, body), live)
  }
}
