/** The limits of config that apply to a request, and their keys. */
import type { LimitConfig, LimitsConfig } from '../config/schema/limits.ts'
import { ownRoutes } from '../config/schema/own-endpoints.ts'
import { textAt } from '../json/values.ts'
import { identityKey, type Session } from '../session/types.ts'
import type { Rate } from './gcra.ts'

export interface Limit {
  readonly name: string
  readonly rate: Rate
  /** Otherwise it only counts and reports. */
  readonly enforced: boolean
  readonly keyOf: (route: string, address: string, caller: Session | undefined) => string
  readonly config: LimitConfig
}

/** Sign-in has budgets of its own: whoever used up another one can still sign in. */
export const signInRoute: string = ownRoutes.login.name

export function compilePlan({ limits }: Pick<LimitsConfig, 'limits'>) {
  const all = Object.entries(limits).map(([name, limit]) => compile(name, limit))
  const find = (route: string, method: string, isFor: (limit: LimitConfig) => boolean) =>
    all.filter(
      ({ config }) => isForRoute(config, route) && isAmong(config.methods, method) && isFor(config)
    )
  const ofRoles = (route: string, method: string, roles: readonly string[]) =>
    find(
      route,
      method,
      ({ by, roles: named }) =>
        by !== 'address' && (named.length === 0 || named.some(role => roles.includes(role)))
    )

  return {
    all,
    of: (route: string, method: string, caller: Session | undefined): readonly Limit[] =>
      // A session of one account must not free guesses at others from limits by address.
      caller === undefined || route === signInRoute
        ? find(route, method, ({ by }) => by === 'address')
        : ofKind(ofRoles(route, method, caller.identity.roles), caller),
    /** The limits of users hold for the genuine cookie of an ended session as well. */
    ofEnded: (route: string, method: string): readonly Limit[] =>
      ofRoles(route, method, []).filter(limit => !isOfKeys(limit))
  }
}

export const keyOfEnded = ({ name }: Limit, session: string): string => `e:${session} ${name}`

/** The first part of each key of a user; it holds no blank. */
export function callerOfUser(key: string): string {
  return `u:${/[ %]/.test(key) ? key.replaceAll('%', '%25').replaceAll(' ', '%20') : key}`
}

export const callerOfAddress = (address: string): string => `a:${address}`

function compile(name: string, config: LimitConfig): Limit {
  const { max, window, burst = max, mode, by, routes } = config
  const [, shared] = /^profile\.(.+)/.exec(by) ?? []
  return {
    name,
    config,
    rate: { max, windowMs: window, burst },
    enforced: mode === 'enforce',
    keyOf: (route, address, caller) => {
      const field = name + (route === signInRoute && routes.length > 1 ? ' sign-in' : '')
      if (by === 'address' || caller === undefined) return `${callerOfAddress(address)} ${field}`
      const session = by === 'session' ? ` ${caller.id}` : ''
      const text = shared && textAt(caller.identity.profile, shared)
      const who =
        text === undefined
          ? callerOfUser(identityKey(caller))
          : `p:${encodeURIComponent(`${shared}=${text}`.toWellFormed())}`
      return `${who} ${field}${session}`
    }
  }
}

/** A provider calls from one address for all its users. */
const onlyWhereNamed = new Set([signInRoute, 'backchannel-logout'])

function isForRoute({ routes }: LimitConfig, route: string): boolean {
  return routes.length === 0 ? !onlyWhereNamed.has(route) : routes.includes(route)
}

function isAmong(list: readonly string[], value: string): boolean {
  return list.length === 0 || list.includes(value)
}

function isOfKeys({ config }: Limit): boolean {
  return config.by === 'key'
}

/** Limits of keys stand in the place of those by which users are counted on all routes. */
function ofKind(limits: readonly Limit[], { key }: Session): readonly Limit[] {
  if (!limits.some(isOfKeys)) return limits
  return limits.filter(limit =>
    key === undefined ? !isOfKeys(limit) : isOfKeys(limit) || limit.config.routes.length > 0
  )
}
