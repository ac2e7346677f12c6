/**
 * The profile endpoint as the app needs it: from an upstream it is a proxied route, with parts an
 * aggregated one, and from the session alone an endpoint of the gateway.
 */
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import { pathsOf, profilePlacement, routeSettings } from '../../config/schema/resolved.ts'
import { isRecord } from '../../json/values.ts'
import { refuseLeak } from '../../login/leaked-credential.ts'
import type { Live } from '../../session/types.ts'
import { fillCurrentUser } from '../../shaping/current-user.ts'
import type { Gateway } from '../gateway.ts'
import { contractOf, responseShapeOf, wayOf } from './compile-common.ts'
import { compileParts } from './compile-parts.ts'
import type { Route, Shaping } from './route.ts'

export function compileProfile(gateway: Gateway): Route {
  const { config, envelope, answers } = gateway
  const { name } = ownRoutes.profile
  const { profile } = config.routes.endpoints
  const { errorStatus, maxBody, maxShaped, touch } = routeSettings(config, 'profile', profile)
  const bodyOf = createBody(gateway)
  const { shape } = responseShapeOf(gateway, name, profile.shape, envelope.success)
  const parts = compileParts(gateway, { ...profile, name, maxBytes: maxShaped }, envelope.success)
  const common = {
    name,
    paths: pathsOf(config.routes, profile.path),
    methods: profile.methods,
    touch,
    access: 'session',
    errorStatus
  } as const
  const shaping: Shaping = {
    shape: async (user, live, sent) => {
      const shaped = await shape(user, live, sent)
      return live && bodyOf(shaped, live)
    },
    shapeNothing: (nothing, live) => live && bodyOf(nothing, live),
    maxShaped,
    tooLarge: 'refuse',
    ...(parts && { parts })
  }
  if (profile.from !== 'upstream') {
    const status = parts === undefined ? answers.profile?.status : undefined
    return {
      ...common,
      status: status ?? 200,
      initialValue: live => live?.session.identity.profile,
      shaping: parts === undefined ? { shape: shaping.shapeNothing } : shaping
    }
  }
  return {
    ...common,
    shaping,
    target: {
      ...wayOf(gateway, profile, profile.upstream ?? ''),
      isReadOnly: true,
      maxBody
    }
  }
}

/** The whole body for a user, as the session or the upstream has it. */
function createBody(gateway: Gateway): (user: unknown, live: Live) => unknown {
  const { config, envelope, sessions } = gateway
  const answer = gateway.answers.profile
  const { contract: rules, from } = config.routes.endpoints.profile
  const placement = profilePlacement(config.routes)
  const contract = contractOf(gateway, 'profile', rules, placement === 'data' && envelope.dataName)
  return (user, live) => {
    const { session } = live
    const usual = () => {
      if (envelope.fillsUser) return fillCurrentUser(user, session.identity)
      if (from === 'upstream' || (user !== undefined && !isRecord(user))) return user
      const { id, username, name, roles } = session.identity
      return { id, username, name, roles, ...user }
    }
    const value =
      answer === undefined
        ? usual()
        : answer.render({ ...live, ...sessions.times(), profile: user })
    refuseLeak(value, session.credential, 'endpoints.profile')
    const whole = envelope.success(value, undefined, placement)
    contract?.(() => whole)
    return whole
  }
}
