/** Which limits hold for a request, and whose counters those are. Compiled once; no Fastify, so that a log can be replayed through it. */
import type { LimitConfig, LimitsConfig } from '../config/limits.ts'
import { identityKey } from '../session/identity-key.ts'
import type { Rule } from './rules.ts'

/** Who asks, as far as limits know them; nobody is who is not signed in. */
export interface Caller {
  /** The session's. */
  readonly id: string
  /** The credential source that vouched for the user. */
  readonly source: string
  readonly identity: { readonly id: string, readonly roles: readonly string[] }
}

/** The limits of one kind of request, as they are counted and told. */
export interface Held {
  readonly rules: readonly Rule[]
  /** @param address as limits count it */
  readonly keysOf: (address: string, caller: Caller | undefined) => string[]
  /** The `RateLimit-Policy` field (draft-ietf-httpapi-ratelimit-headers-11 §3); empty where nothing may be told. */
  readonly policy: string
}

/** @param route a route's name, or an endpoint's */
export type Plan = (route: string, method: string, caller: Caller | undefined) => Held

interface Compiled {
  readonly rule: Rule
  readonly config: LimitConfig
  readonly keyOf: (address: string, caller: Caller | undefined) => string
}

interface OfRoute {
  readonly anonymous: Held
  readonly signedIn: (caller: Caller) => Held
}

/** Whether it counts attempts to sign in, before the password is looked at. */
export const isOfSignIn = ({ by, refusedOnly }: Pick<LimitConfig, 'by' | 'refusedOnly'>) => refusedOnly || [by].flat().includes('account')

/** Of all limits but those of sign-in attempts, which are counted by themselves. */
export function compilePlan ({ limits, replicas }: Pick<LimitsConfig, 'limits' | 'replicas'>): Plan {
  const compiled = Object.entries(limits).filter(([, { mode, by, refusedOnly }]) => mode !== 'off' && !isOfSignIn({ by, refusedOnly })).map(([name, limit]) => compile(name, limit, replicas === 'counted' ? undefined : replicas))
  const ofRoutes = new Map<string, Map<string, OfRoute>>()

  function ofRoute (route: string, method: string): OfRoute {
    const here = compiled.filter(({ config: { routes, methods } }) => (routes.length === 0 || routes.includes(route)) && (methods.length === 0 || (methods as readonly string[]).includes(method)))
    return { anonymous: hold(here.filter(isOfAddress)), signedIn: byRoles(here.filter(each => !isOfAddress(each))) }
  }

  return (route, method, caller) => {
    let methods = ofRoutes.get(route)
    if (methods === undefined) ofRoutes.set(route, methods = new Map())
    let found = methods.get(method)
    if (found === undefined) methods.set(method, found = ofRoute(route, method))
    return caller === undefined ? found.anonymous : found.signedIn(caller)
  }
}

function compile (name: string, config: LimitConfig, replicas: number | undefined): Compiled {
  const { max, window, kind, burst, mode } = config
  const whom = [config.by].flat()
  const rule: Rule = { name, kind: burst === undefined ? kind : 'bucket', max, windowMs: window, burst: burst ?? max, enforced: mode === 'enforce', replicas }
  // In braces stands whom Redis keeps together; behind it what tells apart one limit, and one way of counting, from another.
  const tail = `${name}.${rule.kind}`
  const withAddress = whom.includes('address')
  const withSession = whom.includes('session')
  if (whom.length === 1 && withAddress) return { rule, config, keyOf: address => `{a:${address}}${tail}` }
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

const isOfAddress = ({ config: { by } }: Compiled) => [by].flat().every(whom => whom === 'address')

function hold (limits: readonly Compiled[]): Held {
  const rules = limits.map(({ rule }) => rule)
  const policy = rules.filter(({ enforced }) => enforced).map(({ name, max, windowMs }) => `"${name}";q=${max};w=${Math.max(1, Math.round(windowMs / 1000))}`).join(', ')
  return { rules, policy, keysOf: (address, caller) => limits.map(({ keyOf }) => keyOf(address, caller)) }
}

/** Put together once for each set of limits that some roles have. */
function byRoles (limits: readonly Compiled[]): (caller: Caller) => Held {
  if (limits.every(({ config: { roles } }) => roles.length === 0)) {
    const held = hold(limits)
    return () => held
  }
  const known = new Map<string, Held>()
  return ({ identity }) => {
    const holds = ({ config: { roles } }: Compiled) => roles.length === 0 || roles.some(role => identity.roles.includes(role))
    let key = ''
    for (const limit of limits) key += holds(limit) ? '1' : '0'
    let found = known.get(key)
    if (found === undefined) known.set(key, found = hold(limits.filter(holds)))
    return found
  }
}

