/** Whom a limit counts, and what a refused request gets. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { LimitsConfig } from '../../config/schema/limits.ts'
import { GatewayError } from '../../errors.ts'
import type { Leases } from '../../limits/counting/leases.ts'
import { compileEnded, compilePlan, signInRoute } from '../../limits/counting/plan.ts'
import { identityKey, type VouchedUser } from '../../session/identity-key.ts'
import type { Rule, Verdict } from '../../limits/counting/rules.ts'
import { createCountedAddress } from './address.ts'
import { unknownRoute } from './context.ts'
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
  /** Told of each refusal, by the limit's name, and of what a limit in shadow would have refused. */
  readonly onRefused: (limit: string, inShadow: boolean) => void
}

export function createLimits({ config, leases, inFlight, onRefused }: Options): LimitsHook {
  const plan = compilePlan(config)
  const ofEnded = compileEnded(config)
  const countedAddress = createCountedAddress(config.ipv6Prefix)
  const tells = (refused: boolean) =>
    config.headers === 'always' || (refused && config.headers === 'refused')

  return function checkLimits(request, reply, done) {
    const session = liveSession(request)
    const {
      config: { route = unknownRoute, access }
    } = request.routeOptions
    const address = countedAddress(request)
    const ended = session === undefined && access !== 'public' ? request.endedSession : undefined
    const who = ended === undefined ? inFlightKey(route, address, session) : `ended:${ended}`
    const full = acquireSlot(who, route, request, reply)
    if (full !== undefined) return done(full)
    const held = ended === undefined ? plan(route, request.method, session) : ofEnded(ended)
    const { rules, keysOf, policy } = held
    if (rules.length === 0) return done()
    const keys = keysOf(address, session)
    const judge = (verdicts: readonly Verdict[]) => {
      let refused: Verdict | undefined
      for (let index = 0; index < verdicts.length; index++) {
        const verdict = verdicts[index] as Verdict
        if (!verdict.exceeded) continue
        const { enforced, name } = rules[index] as Rule
        onRefused(name, !enforced)
        if (verdict.isNews === true)
          request.log.info(
            {
              event: 'limit.over',
              limit: name,
              mode: enforced ? 'enforce' : 'shadow',
              ...(session === undefined ? { address } : { user: session.identity.username }),
              seconds: Math.ceil(verdict.retryMs / 1000)
            },
            enforced ? 'over a limit' : 'over a limit that is in shadow'
          )
        if (enforced && (refused === undefined || verdict.retryMs > refused.retryMs))
          refused = verdict
      }
      if (tells(refused !== undefined) && policy !== '')
        reply.header('ratelimit-policy', policy).header('ratelimit', told(rules, verdicts))
      done(
        refused === undefined
          ? undefined
          : new GatewayError('limit.exceeded', { retryAfter: refused.retryMs / 1000 })
      )
    }
    const known = leases.tryLocally(rules, keys)
    if (known !== undefined) judge(known)
    else leases.acquire(rules, keys).then(judge).catch(done)
  }

  function acquireSlot(
    who: string,
    route: string,
    request: FastifyRequest,
    reply: FastifyReply
  ): GatewayError | undefined {
    // Who left while the session was looked up closes no more, and would be counted for ever.
    if (reply.raw.closed) return undefined
    const bound = inFlightBound(route)
    const most = config.inFlightPerRoute[route]
    const ofRoute = inFlightRouteKey(route)
    if ((inFlight.get(who) ?? 0) >= config[bound]) {
      onRefused(bound, false)
      return new GatewayError('limit.exceeded', {
        retryAfter: 1,
        message: 'Too many requests at the same time. Please wait for some to finish.'
      })
    }
    if (most !== undefined && (inFlight.get(ofRoute) ?? 0) >= most) {
      onRefused('inFlightPerRoute', false)
      return new GatewayError('overloaded', { retryAfter: 1 })
    }
    const change = (key: string, by: number) => {
      const now = (inFlight.get(key) ?? 0) + by
      if (now > 0) inFlight.set(key, now)
      else inFlight.delete(key)
    }
    change(who, 1)
    if (most !== undefined) change(ofRoute, 1)
    request.onResponseClose.push(() => {
      change(who, -1)
      if (most !== undefined) change(ofRoute, -1)
    })
    return undefined
  }
}

/** Under which names requests in flight are counted. */
export function inFlightKey(route: string, address: string, user: VouchedUser | undefined): string {
  if (route === signInRoute) return `sign-in:${address}`
  return user === undefined ? `address:${address}` : `user:${identityKey(user)}`
}

/** The key of `limits.yaml` that says how many requests of one caller may be in flight. */
function inFlightBound(route: string): 'inFlightSignIns' | 'inFlightPerUser' {
  return route === signInRoute ? 'inFlightSignIns' : 'inFlightPerUser'
}
export function inFlightRouteKey(route: string) {
  return `route:${route}`
}

/** The `RateLimit` field: what is left of each limit, and in how many seconds it is whole again. */
function told(rules: readonly Rule[], verdicts: readonly Verdict[]): string {
  let text = ''
  for (let index = 0; index < rules.length; index++) {
    const { name, enforced } = rules[index] as Rule
    const { remaining, resetMs } = verdicts[index] as Verdict
    // Where one that is known to be over refuses, nobody asked for the others.
    if (enforced && remaining + resetMs > 0)
      text += `${text === '' ? '' : ', '}"${name}";r=${remaining};t=${Math.ceil(resetMs / 1000)}`
  }
  return text
}
