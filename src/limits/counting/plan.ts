/**
 * Compiles the limits of config into a plan: the rules and keys that apply to a request. No
 * Fastify, so that a replay of a log can use it.
 */
import type { LimitConfig, LimitsConfig } from '../../config/schema/limits.ts'
import { ownRoutes } from '../../config/schema/own-endpoints.ts'
import { identityKey } from '../../session/identity-key.ts'
import type { Rule } from './rules.ts'

/** The caller as limits know it; undefined without a session. */
export interface LimitSubject {
  /** The session's id. */
  readonly id: string
  /** The credential source that vouched for the user. */
  readonly source: string
  readonly identity: { readonly id: string; readonly roles: readonly string[] }
}

/** The limits that apply to one kind of request. */
export interface ApplicableLimits {
  readonly rules: readonly Rule[]
  /** @param address as limits count it */
  readonly keysOf: (address: string, caller: LimitSubject | undefined) => string[]
  /**
   * The `RateLimit-Policy` field (draft-ietf-httpapi-ratelimit-headers-11 §3); empty where nothing
   * may be told.
   */
  readonly policy: string
}

/** @param route a route's name, or an endpoint's */
export type Plan = (
  route: string,
  method: string,
  caller: LimitSubject | undefined
) => ApplicableLimits

interface Compiled {
  readonly rule: Rule
  readonly config: LimitConfig
  readonly keyOf: (address: string, caller: LimitSubject | undefined) => string
}

interface OfRoute {
  readonly anonymous: ApplicableLimits
  readonly signedIn: (caller: LimitSubject) => ApplicableLimits
}

/** Whether a limit counts sign-in attempts, before the password is checked. */
export const isOfSignIn = ({ by, refusedOnly }: Pick<LimitConfig, 'by' | 'refusedOnly'>) =>
  refusedOnly || by.includes('account')

/** Sign-in has budgets of its own: whoever used up another one can still sign in. */
export const signInRoute: string = ownRoutes.login.name

/** Whether a limit applies to a route. Sign-in only where it is named. */
function isForRoute({ routes }: Pick<LimitConfig, 'routes'>, route: string): boolean {
  return routes.length === 0 ? route !== signInRoute : routes.includes(route)
}

function isForMethod({ methods }: Pick<LimitConfig, 'methods'>, method: string): boolean {
  return methods.length === 0 || (methods as readonly string[]).includes(method)
}

const isCounted = (limit: LimitConfig) => limit.mode !== 'off' && !isOfSignIn(limit)

/** The plan of all limits except those of sign-in attempts, which are counted apart. */
export function compilePlan({ limits, replicas }: Pick<LimitsConfig, 'limits' | 'replicas'>): Plan {
  const others = Object.entries(limits).filter(([, limit]) => isCounted(limit))
  const processes = replicas === 'counted' ? undefined : replicas
  const compiled = others.map(([name, limit]) => compile(name, limit, processes))
  const ofSignIn = others.map(([name, limit]) => {
    return compile(name, limit, processes, limit.routes.length > 1 ? '.sign-in' : '')
  })
  const ofRoutes = new Map<string, Map<string, OfRoute>>()

  function ofRoute(route: string, method: string): OfRoute {
    const isSignIn = route === signInRoute
    const possible = isSignIn ? ofSignIn : compiled
    const holds = ({ config }: Compiled) => isForRoute(config, route) && isForMethod(config, method)
    const here = possible.filter(holds)
    const anonymous = hold(here.filter(isOfAddress))
    return {
      anonymous,
      // A session of one account must not free guesses at others from limits by address.
      signedIn: isSignIn ? () => anonymous : byRoles(here.filter(each => !isOfAddress(each)))
    }
  }

  return (route, method, caller) => {
    let methods = ofRoutes.get(route)
    if (methods === undefined) ofRoutes.set(route, (methods = new Map()))
    let applicable = methods.get(method)
    if (applicable === undefined) methods.set(method, (applicable = ofRoute(route, method)))
    return caller === undefined ? applicable.anonymous : applicable.signedIn(caller)
  }
}

/** @param apart a suffix for a separate budget of the same limit */
function compile(
  name: string,
  config: LimitConfig,
  replicas: number | undefined,
  apart = ''
): Compiled {
  const { max, window, kind, burst, mode } = config
  const whom = config.by
  const rule: Rule = {
    name,
    kind: burst === undefined ? kind : 'bucket',
    max,
    windowMs: window,
    burst: burst ?? max,
    enforced: mode === 'enforce',
    replicas
  }
  // The braces hold the caller, whose keys share a Redis slot; the tail tells limits and ways of
  // counting apart.
  const tail = `${name}.${rule.kind}${apart}`
  const withAddress = whom.includes('address')
  const withSession = whom.includes('session')
  if (whom.length === 1 && withAddress) {
    return { rule, config, keyOf: address => `{a:${address}}${tail}` }
  }
  return {
    rule,
    config,
    keyOf: (address, caller) => {
      const user = caller === undefined ? '' : identityKey(caller)
      const session = withSession ? `.${caller?.id ?? ''}` : ''
      return `{u:${user}}${tail}${session}${withAddress ? `.${address}` : ''}`
    }
  }
}

function isOfAddress({ config: { by } }: Compiled) {
  return by.every(whom => whom === 'address')
}

function hold(limits: readonly Compiled[]): ApplicableLimits {
  const rules = limits.map(({ rule }) => rule)
  return {
    rules,
    policy: policyOf(rules),
    keysOf: (address, caller) => limits.map(({ keyOf }) => keyOf(address, caller))
  }
}

function policyOf(rules: readonly Rule[]): string {
  const enforcedRules = rules.filter(({ enforced }) => enforced)
  const seconds = (ms: number) => Math.max(1, Math.round(ms / 1000))
  const policies = enforcedRules.map(
    ({ name, max, windowMs }) => `"${name}";q=${max};w=${seconds(windowMs)}`
  )
  return policies.join(', ')
}

/** The rules in force by `NAME.KIND`, which follows the caller in their keys. */
export function rulesByTail({ limits, replicas }: Pick<LimitsConfig, 'limits' | 'replicas'>) {
  const others = Object.entries(limits).filter(([, limit]) => isCounted(limit))
  return new Map(
    others.map(([name, limit]) => {
      const { rule } = compile(name, limit, replicas === 'counted' ? undefined : replicas)
      return [`${name}.${rule.kind}`, rule] as const
    })
  )
}

/** The limit for requests with the cookie of an ended session. */
export function compileEnded({
  endedSessions: { max, window },
  replicas
}: Pick<LimitsConfig, 'endedSessions' | 'replicas'>): (session: string) => ApplicableLimits {
  const name = 'ended-sessions'
  const rule: Rule = {
    name,
    kind: 'fixed',
    max,
    windowMs: window,
    burst: max,
    enforced: true,
    replicas: replicas === 'counted' ? undefined : replicas
  }
  const policy = policyOf([rule])
  return session => ({ rules: [rule], policy, keysOf: () => [`{e:${session}}${name}.fixed`] })
}

/** Cached for each set of limits that some roles have. */
function byRoles(limits: readonly Compiled[]): (caller: LimitSubject) => ApplicableLimits {
  if (limits.every(({ config: { roles } }) => roles.length === 0)) {
    const held = hold(limits)
    return () => held
  }
  const byHeld = new Map<string, ApplicableLimits>()
  return ({ identity }) => {
    const holds = ({ config: { roles } }: Compiled) =>
      roles.length === 0 || roles.some(role => identity.roles.includes(role))
    let key = ''
    for (const limit of limits) key += holds(limit) ? '1' : '0'
    let applicable = byHeld.get(key)
    if (applicable === undefined) byHeld.set(key, (applicable = hold(limits.filter(holds))))
    return applicable
  }
}
