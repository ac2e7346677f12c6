/** Limits of requests: finds those of a request, and refuses it when one is exceeded. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { LimitsConfig } from '../../config/schema/limits.ts'
import { GatewayError } from '../../errors.ts'
import type { Leases } from '../../limits/counting/leases.ts'
import {
  type ApplicableLimits,
  compileEnded,
  compilePlan,
  signInRoute
} from '../../limits/counting/plan.ts'
import { identityKey, type VouchedUser } from '../../session/identity-key.ts'
import type { Rule, Verdict } from '../../limits/counting/rules.ts'
import { createCountedAddress } from './address.ts'
import { unknownRoute } from './context.ts'
import { gate } from './gate.ts'
import { whoOf } from './request-facts.ts'
import { liveSession } from './session.ts'

/** A hook, after the session's. */
export type LimitsHook = (
  request: FastifyRequest,
  reply: FastifyReply,
  done: (error?: Error) => void
) => void

interface Options {
  readonly config: LimitsConfig
  readonly leases: Leases
  /** Requests in flight, by user or address or route; outlives a generation, as requests do. */
  readonly inFlight: Map<string, number>
  /** Under overload a caller may have less than config says. */
  readonly inFlightShare: () => number
  /**
   * Called with the limit's name for each refusal, and for what a limit in shadow would have
   * refused.
   */
  readonly onRefused: (limit: string, inShadow: boolean) => void
}

export function createLimits(options: Options): LimitsHook {
  const { config, leases, onRefused } = options
  const plan = compilePlan(config)
  const ofEnded = compileEnded(config)
  const countedAddress = createCountedAddress(config.ipv6Prefix)
  const acquireSlot = createSlots(options)
  const decide = createDecision({ config, countedAddress, onRefused })

  return gate('limits', function checkLimits(request, reply, done) {
    const session = liveSession(request)
    const { route = unknownRoute, access } = request.routeConfig
    const address = countedAddress(request)
    const ended = session === undefined && access !== 'public' ? request.endedSession : undefined
    const subject = ended === undefined ? inFlightKey(route, address, session) : `ended:${ended}`
    const full = acquireSlot(subject, route, request, reply)
    if (full !== undefined) return done(full)
    const limits = ended === undefined ? plan(route, request.method, session) : ofEnded(ended)
    const { rules } = limits
    if (rules.length === 0) return done()
    const keys = limits.keysOf(address, session)
    const { trail } = request
    trail.rules = rules
    const verdicts = leases.tryLocally(rules, keys)
    if (verdicts !== undefined) {
      trail.verdicts = verdicts
      return done(decide(request, reply, limits, verdicts))
    }
    const startedAt = performance.now()
    trail.limitsAt = startedAt
    leases
      .acquire(rules, keys)
      .then(acquired => {
        trail.limitsMs = performance.now() - startedAt
        trail.verdicts = acquired
        done(decide(request, reply, limits, acquired))
      })
      .catch(done)
  })
}

/** Turns the verdicts of a request's limits into headers, log lines, metrics and a refusal. */
function createDecision({
  config,
  countedAddress,
  onRefused
}: Pick<Options, 'config' | 'onRefused'> & {
  readonly countedAddress: (request: FastifyRequest) => string
}) {
  const sendsHeaders = (isRefused: boolean) =>
    config.headers === 'always' || (isRefused && config.headers === 'refused')

  function logExceeded(request: FastifyRequest, { name, enforced }: Rule, retryMs: number): void {
    const { route = unknownRoute } = request.routeConfig
    const isOfAddress = liveSession(request) === undefined || route === signInRoute
    request.log.info(
      {
        event: 'limit.over',
        limit: name,
        route,
        mode: enforced ? 'enforce' : 'shadow',
        ...(isOfAddress ? { address: countedAddress(request) } : whoOf(request)),
        seconds: Math.ceil(retryMs / 1000)
      },
      enforced ? 'over a limit' : 'over a limit that is in shadow'
    )
  }

  return (
    request: FastifyRequest,
    reply: FastifyReply,
    { rules, policy }: ApplicableLimits,
    verdicts: readonly Verdict[]
  ): GatewayError | undefined => {
    let refusal: Verdict | undefined
    let limit = ''
    for (let index = 0; index < verdicts.length; index++) {
      const verdict = verdicts[index] as Verdict
      if (!verdict.exceeded) continue
      const rule = rules[index] as Rule
      onRefused(rule.name, !rule.enforced)
      if (verdict.isNews === true) logExceeded(request, rule, verdict.retryMs)
      if (rule.enforced && (refusal === undefined || verdict.retryMs > refusal.retryMs)) {
        refusal = verdict
        limit = rule.name
      }
    }
    if (sendsHeaders(refusal !== undefined) && policy !== '') {
      reply.header('ratelimit-policy', policy).header('ratelimit', rateLimitHeader(rules, verdicts))
    }
    return refusal === undefined
      ? undefined
      : new GatewayError('limit.exceeded', { retryAfter: refusal.retryMs / 1000, limit })
  }
}

/** Counts requests in flight: of each caller, and of routes that have a bound of their own. */
function createSlots({ config, inFlight, inFlightShare, onRefused }: Options) {
  const maxOf = new Map(Object.entries(config.inFlightPerRoute))
  const change = (key: string, by: number) => {
    const count = (inFlight.get(key) ?? 0) + by
    if (count > 0) inFlight.set(key, count)
    else inFlight.delete(key)
  }

  return function acquireSlot(
    subject: string,
    route: string,
    request: FastifyRequest,
    reply: FastifyReply
  ): GatewayError | undefined {
    // If the client disconnected during the lookup, `close` has fired already and the slot would
    // leak.
    if (reply.raw.closed) return undefined
    const bound = inFlightBound(route)
    const maxOfRoute = maxOf.get(route)
    const routeKey = inFlightRouteKey(route)
    const max = Math.min(config[bound], inFlightShare())
    if ((inFlight.get(subject) ?? 0) >= max) {
      onRefused(bound, false)
      return new GatewayError('limit.exceeded', {
        retryAfter: 1,
        limit: bound,
        limitMax: max,
        message: 'Too many requests at the same time. Please wait for some to finish.'
      })
    }
    if (maxOfRoute !== undefined && (inFlight.get(routeKey) ?? 0) >= maxOfRoute) {
      const limit = 'inFlightPerRoute'
      onRefused(limit, false)
      return new GatewayError('overloaded', { retryAfter: 1, limit, limitMax: maxOfRoute })
    }
    change(subject, 1)
    if (maxOfRoute !== undefined) change(routeKey, 1)
    request.onResponseClose.push(() => {
      change(subject, -1)
      if (maxOfRoute !== undefined) change(routeKey, -1)
    })
    return undefined
  }
}

/** The name under which a caller's requests in flight are counted. */
export function inFlightKey(route: string, address: string, user: VouchedUser | undefined): string {
  if (route === signInRoute) return `sign-in:${address}`
  return user === undefined ? `address:${address}` : `user:${identityKey(user)}`
}

/** The key of `limits.yaml` that bounds the requests in flight of one caller. */
function inFlightBound(route: string): 'inFlightSignIns' | 'inFlightPerUser' {
  return route === signInRoute ? 'inFlightSignIns' : 'inFlightPerUser'
}
export function inFlightRouteKey(route: string) {
  return `route:${route}`
}

/**
 * The `RateLimit` header: what is left of each limit, and in how many seconds it is whole again.
 */
function rateLimitHeader(rules: readonly Rule[], verdicts: readonly Verdict[]): string {
  let text = ''
  for (let index = 0; index < rules.length; index++) {
    const { name, enforced } = rules[index] as Rule
    const { remaining, resetMs } = verdicts[index] as Verdict
    // A limit known to be exceeded refuses before the others are read: those have no numbers.
    if (enforced && remaining + resetMs > 0) {
      text += `${text === '' ? '' : ', '}"${name}";r=${remaining};t=${Math.ceil(resetMs / 1000)}`
    }
  }
  return text
}
