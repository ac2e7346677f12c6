/** Whom a limit counts, and what a refused request gets. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { LimitConfig, LimitsConfig } from '../config/limits.ts'
import { GatewayError } from '../errors.ts'
import type { Leases } from '../limits/leases.ts'
import type { Rule, Verdict } from '../limits/rules.ts'
import type { Session } from '../session/record.ts'
import { addressKey } from './address.ts'
import { unknownRoute } from './context.ts'
import { liveSession } from './session.ts'

/** A hook, after the session's. */
export type LimitsHook = (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void) => void

interface Options {
  readonly config: LimitsConfig
  readonly leases: Leases
  /** Requests in flight, by user or address or route; outlives a generation, as requests do. */
  readonly inFlight: Map<string, number>
  /** Told of each refusal, by the limit's name, and of what a limit in shadow would have refused. */
  readonly onRefused: (limit: string, inShadow: boolean) => void
}

interface Compiled {
  readonly rule: Rule
  readonly keyOf: (request: FastifyRequest, session: Session | undefined) => string
  readonly roles: readonly string[]
}

/** The limits of one kind of request, as they are told and counted. */
interface Held {
  readonly limits: readonly Compiled[]
  readonly rules: readonly Rule[]
  readonly policy: string
  readonly byRole: boolean
}

export function createLimits ({ config, leases, inFlight, onRefused }: Options): LimitsHook {
  const limits = Object.entries(config.limits).filter(([, { mode, by, refusedOnly }]) => mode !== 'off' && !refusedOnly && ![by].flat().includes('account'))
  const compiled = limits.map(([name, limit]) => ({ limit, ...compile(name, limit, config.replicas) }))
  const ofRoutes = new Map<string, { readonly anonymous: Held, readonly signedIn: Held }>()
  const heldBy = (route: string, method: string) => {
    const key = `${method} ${route}`
    let found = ofRoutes.get(key)
    if (found === undefined) {
      const here = compiled.filter(({ limit: { routes, methods } }) => (routes.length === 0 || routes.includes(route)) && (methods.length === 0 || (methods as readonly string[]).includes(method)))
      const isOfAddress = ({ limit: { by } }: typeof here[number]) => [by].flat().every(whom => whom === 'address')
      ofRoutes.set(key, found = { anonymous: hold(here.filter(isOfAddress)), signedIn: hold(here.filter(each => !isOfAddress(each))) })
    }
    return found
  }
  const tells = (refused: boolean) => config.headers === 'always' || (refused && config.headers === 'refused')

  return function checkLimits (request, reply, done) {
    const session = liveSession(request)
    const { config: { route = unknownRoute } } = request.routeOptions
    const held = heldBy(route, request.method)
    const full = enter(session === undefined ? `address:${addressKey(request)}` : `user:${session.identity.id}`, route, reply)
    if (full !== undefined) return done(full)
    const { limits: mine, rules, policy } = session === undefined ? held.anonymous : ofRoles(held.signedIn, session)
    if (rules.length === 0) return done()
    const keys = mine.map(({ keyOf }) => keyOf(request, session))
    const judge = (verdicts: readonly Verdict[]) => {
      let refused: Verdict | undefined
      verdicts.forEach((verdict, index) => {
        const { enforced, name } = rules[index] as Rule
        if (!verdict.exceeded) return
        onRefused(name, !enforced)
        if (enforced && (refused === undefined || verdict.retryMs > refused.retryMs)) refused = verdict
      })
      if (tells(refused !== undefined) && policy !== '') reply.header('ratelimit-policy', policy).header('ratelimit', told(rules, verdicts))
      done(refused === undefined ? undefined : new GatewayError('limit.exceeded', { retryAfter: refused.retryMs / 1000 }))
    }
    const known = leases.peek(rules, keys)
    if (known !== undefined) judge(known)
    else leases.ask(rules, keys).then(judge).catch(done)
  }

  function enter (who: string, route: string, reply: FastifyReply): GatewayError | undefined {
    // Who left while the session was looked up closes no more, and would be counted for ever.
    if (reply.raw.closed) return undefined
    const most = config.inFlightPerRoute[route]
    const ofRoute = `route:${route}`
    if ((inFlight.get(who) ?? 0) >= config.inFlightPerUser) {
      onRefused('inFlightPerUser', false)
      return new GatewayError('limit.exceeded', { retryAfter: 1, message: 'Too many requests at the same time. Please wait for some to finish.' })
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
    reply.raw.once('close', () => {
      change(who, -1)
      if (most !== undefined) change(ofRoute, -1)
    })
    return undefined
  }
}

function compile (name: string, { by, max, window, kind, burst, mode, roles }: LimitConfig, replicas: number): Compiled {
  const whom = [by].flat().toSorted()
  const rule: Rule = { name, kind: burst === undefined ? kind : 'bucket', max, windowMs: window, burst: burst ?? max, enforced: mode === 'enforce', replicas }
  // In braces stands whom Redis keeps together; behind it what tells apart one limit, and one way of counting, from another.
  const tail = `${name}.${rule.kind}`
  const withAddress = whom.includes('address')
  const withSession = whom.includes('session')
  if (whom.length === 1 && withAddress) return { rule, roles, keyOf: request => `{a:${addressKey(request)}}${tail}` }
  return { rule, roles, keyOf: (request, session) => `{u:${session?.identity.id ?? ''}}${tail}${withSession ? `.${session?.id ?? ''}` : ''}${withAddress ? `.${addressKey(request)}` : ''}` }
}

function hold (limits: readonly Compiled[]): Held {
  const rules = limits.map(({ rule }) => rule)
  const policy = rules.filter(({ enforced }) => enforced).map(({ name, max, windowMs }) => `"${name}";q=${max};w=${Math.max(1, Math.round(windowMs / 1000))}`).join(', ')
  return { limits, rules, policy, byRole: limits.some(({ roles }) => roles.length > 0) }
}

const ofRoles = (held: Held, { identity }: Session): Held => held.byRole ? hold(held.limits.filter(({ roles }) => roles.length === 0 || roles.some(role => identity.roles.includes(role)))) : held

/** The `RateLimit` field: what is left of each limit, and in how many seconds it is whole again. */
function told (rules: readonly Rule[], verdicts: readonly Verdict[]): string {
  let text = ''
  for (let index = 0; index < rules.length; index++) {
    const { name, enforced } = rules[index] as Rule
    const { remaining, resetMs } = verdicts[index] as Verdict
    if (enforced) text += `${text === '' ? '' : ', '}"${name}";r=${remaining};t=${Math.ceil(resetMs / 1000)}`
  }
  return text
}
