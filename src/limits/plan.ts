/** Compiles the limits of config into a plan: the limits that apply to a request, and their keys. */
import type { LimitConfig, LimitsConfig } from '../config/schema/limits.ts'
import { ownRoutes } from '../config/schema/own-endpoints.ts'
import { textAt } from '../json/values.ts'
import { identityKey, type VouchedUser } from '../session/identity-key.ts'
import type { Rate } from './gcra.ts'

/** A signed-in caller as limits know it. */
export interface LimitSubject extends VouchedUser {
  /** The session's id. */
  readonly id: string
  readonly identity: {
    readonly id: string
    readonly roles: readonly string[]
    readonly profile?: unknown
  }
}

export interface Limit {
  readonly name: string
  readonly rate: Rate
  /** Otherwise it only counts and reports. */
  readonly enforced: boolean
  /** @param address as limits count it */
  readonly keyOf: (address: string, caller: LimitSubject | undefined) => string
  /** The key of an ended session, whose requests are counted apart. */
  readonly keyOfEnded: (session: string) => string
}

/** The limits that apply to one kind of request. */
export interface ApplicableLimits {
  readonly limits: readonly Limit[]
  /**
   * The `RateLimit-Policy` field (draft-ietf-httpapi-ratelimit-headers-11 §3); empty where nothing
   * may be told.
   */
  readonly policy: string
}

export interface Plan {
  /** All limits that count. */
  readonly all: readonly Limit[]
  /** @param route a route's name, or an endpoint's */
  readonly of: (route: string, method: string, caller: LimitSubject | undefined) => ApplicableLimits
  /** The limits of users hold for the genuine cookie of an ended session as well. */
  readonly ofEnded: (route: string, method: string) => ApplicableLimits
}

interface Compiled extends Limit {
  readonly config: LimitConfig
}

interface OfRoute {
  readonly anonymous: ApplicableLimits
  readonly ended: ApplicableLimits
  readonly signedIn: (caller: LimitSubject) => ApplicableLimits
}

/** Sign-in has budgets of its own: whoever used up another one can still sign in. */
export const signInRoute: string = ownRoutes.login.name

export function compilePlan({ limits }: Pick<LimitsConfig, 'limits'>): Plan {
  const counted = Object.entries(limits).filter(([, { mode }]) => mode !== 'off')
  const compiled = counted.map(([name, limit]) => compile(name, limit))
  const ofSignIn = counted.map(([name, limit]) =>
    compile(name, limit, limit.routes.length > 1 ? ' sign-in' : '')
  )
  const ofRoutes = new Map<string, OfRoute>()

  function compileRoute(route: string, method: string): OfRoute {
    const isSignIn = route === signInRoute
    const here = (isSignIn ? ofSignIn : compiled).filter(
      ({ config }) => isForRoute(config, route) && isForMethod(config, method)
    )
    const ofUsers = here.filter(each => !isOfAddress(each))
    const anonymous = hold(here.filter(isOfAddress))
    return {
      anonymous,
      ended: hold(ofUsers.filter(({ config: { roles } }) => roles.length === 0)),
      // A session of one account must not free guesses at others from limits by address.
      signedIn: isSignIn ? () => anonymous : byRoles(ofUsers)
    }
  }

  function ofRoute(route: string, method: string): OfRoute {
    const key = `${method} ${route}`
    let applicable = ofRoutes.get(key)
    if (applicable === undefined) ofRoutes.set(key, (applicable = compileRoute(route, method)))
    return applicable
  }

  return {
    all: compiled,
    of: (route, method, caller) => {
      const { anonymous, signedIn } = ofRoute(route, method)
      return caller === undefined ? anonymous : signedIn(caller)
    },
    ofEnded: (route, method) => ofRoute(route, method).ended
  }
}

/** The first part of each key of a caller who is signed in; it holds no blank. */
export function callerOfUser(user: VouchedUser): string {
  const key: string = identityKey(user)
  return `u:${/[ %]/.test(key) ? key.replaceAll('%', '%25').replaceAll(' ', '%20') : key}`
}

/** The first part of each key of all who share a value of their profile; undefined without one. */
function callerOfProfile(path: string, { identity }: LimitSubject): string | undefined {
  const text = textAt(identity.profile, path)
  return text === undefined
    ? undefined
    : `p:${encodeURIComponent(`${path}=${text}`.toWellFormed())}`
}

/** The first part of each key of an address. */
export const callerOfAddress = (address: string): string => `a:${address}`

/** @param apart tells a separate budget of the same limit */
function compile(name: string, config: LimitConfig, apart = ''): Compiled {
  const { max, window, burst = max, mode, by } = config
  const field = name + apart
  const withAddress = by.includes('address')
  const withSession = by.includes('session')
  const isOfAddressAlone = withAddress && by.length === 1
  const shared = by.find(each => each.startsWith('profile.'))?.slice('profile.'.length)
  return {
    name,
    config,
    rate: { max, windowMs: window, burst },
    enforced: mode === 'enforce',
    keyOf: (address, caller) => {
      if (isOfAddressAlone || caller === undefined) return `${callerOfAddress(address)} ${field}`
      const session = withSession ? ` ${caller.id}` : ''
      const all = shared === undefined ? undefined : callerOfProfile(shared, caller)
      const who = all ?? callerOfUser(caller)
      return `${who} ${field}${session}${withAddress ? ` ${address}` : ''}`
    },
    keyOfEnded: session => `e:${session} ${field}`
  }
}

/** Sign-in only where it is named. */
function isForRoute({ routes }: Pick<LimitConfig, 'routes'>, route: string): boolean {
  return routes.length === 0 ? route !== signInRoute : routes.includes(route)
}

function isForMethod({ methods }: Pick<LimitConfig, 'methods'>, method: string): boolean {
  return methods.length === 0 || (methods as readonly string[]).includes(method)
}

function isOfAddress({ config: { by } }: Compiled): boolean {
  return by.every(whom => whom === 'address')
}

function hold(limits: readonly Limit[]): ApplicableLimits {
  return { limits, policy: policyOf(limits) }
}

function policyOf(limits: readonly Limit[]): string {
  const seconds = (ms: number) => Math.max(1, Math.round(ms / 1000))
  return limits
    .filter(({ enforced }) => enforced)
    .map(({ name, rate: { max, windowMs } }) => `"${name}";q=${max};w=${seconds(windowMs)}`)
    .join(', ')
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
    const key = limits.map(limit => (holds(limit) ? '1' : '0')).join('')
    let applicable = byHeld.get(key)
    if (applicable === undefined) byHeld.set(key, (applicable = hold(limits.filter(holds))))
    return applicable
  }
}
