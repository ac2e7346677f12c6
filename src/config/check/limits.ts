/** Rules for limits: reports those that can never act or that count no caller. */
import { nearest } from '../schema/faults.ts'
import type { LimitConfig } from '../schema/limits.ts'
import { endpointNames } from '../schema/own-endpoints.ts'
import { ownMember } from '../schema/visit.ts'
import type { CheckedConfig, Report } from './report.ts'

type LimitsAndRoutes = Pick<CheckedConfig, 'gateway' | 'routes' | 'limits'>

export function checkLimits(config: LimitsAndRoutes, report: Report): void {
  for (const rule of [
    checkRouteNames,
    checkWhom,
    checkNumbers,
    checkTighterTwins,
    checkAccess,
    checkGuessing
  ]) {
    rule(config, report)
  }
}

type Named = readonly [name: string, limit: LimitConfig]

const limitsOf = ({ limits: { limits } }: LimitsAndRoutes): Named[] => Object.entries(limits)

/** Reports what is wrong with a key of one limit. */
const reportOf = (report: Report, name: string) => (key: string, message: string) =>
  report('limits', ['limits', name, key], message)

function checkRouteNames(config: LimitsAndRoutes, report: Report): void {
  const names = [...endpointNames, ...Object.keys(config.routes.routes)]
  const messageOf = (route: string) => `there is no route "${route}".${nearest(route, names)}`
  for (const [name, limit] of limitsOf(config)) {
    limit.routes.forEach((route, index) => {
      if (!names.includes(route)) {
        report('limits', ['limits', name, 'routes', index], messageOf(route))
      }
    })
  }
  for (const route of Object.keys(config.limits.inFlightPerRoute)) {
    if (!names.includes(route)) report('limits', ['inFlightPerRoute', route], messageOf(route))
  }
}

const isOfProfile = (by: LimitConfig['by']) => by.some(each => each.startsWith('profile.'))
const isOfUsers = (by: LimitConfig['by']) =>
  by.includes('user') || by.includes('session') || isOfProfile(by)

/** `by` and the keys that narrow it: sign-ins have no user yet. */
function checkWhom(config: LimitsAndRoutes, report: Report): void {
  for (const [name, { by, routes, roles }] of limitsOf(config)) {
    const fault = reportOf(report, name)
    const onlyLogin = routes.length === 1 && routes[0] === 'login'
    if (isOfUsers(by) && onlyLogin) {
      fault('by', 'counts nobody, since sign-in has no user yet; set by: address')
    }
    if (isOfProfile(by) && by.filter(each => each !== 'address').length > 1) {
      fault('by', 'a member of the profile stands alone, or beside address')
    }
    if (roles.length > 0 && !isOfUsers(by)) {
      fault('roles', 'only signed-in callers have roles: set by: user or by: session')
    }
  }
}

function checkNumbers(config: LimitsAndRoutes, report: Report): void {
  for (const [name, { burst, max }] of limitsOf(config)) {
    if (burst === undefined || burst <= max) continue
    const message = 'is more than max: the bucket would hold more than one window refills'
    reportOf(report, name)('burst', message)
  }
}

/** Of two limits that differ in nothing but their numbers, the looser one never acts. */
function checkTighterTwins(config: LimitsAndRoutes, report: Report): void {
  const limits = limitsOf(config)
  for (const [name, limit] of limits) {
    const tighter = limits.find(
      ([other, { mode, max, window, ...scope }]) =>
        other !== name &&
        mode === 'enforce' &&
        isSame(limit, scope) &&
        max <= limit.max &&
        window >= limit.window &&
        (max < limit.max || window > limit.window)
    )
    if (limit.mode !== 'enforce' || tighter === undefined) continue
    const message = `can never be reached: ${tighter[0]} is tighter for the same callers`
    const how = { severity: 'warning', also: ['limits', tighter[0], 'max'] } as const
    report('limits', ['limits', name, 'max'], message, how)
  }
}

function checkAccess(config: LimitsAndRoutes, report: Report): void {
  for (const [name, { by, routes }] of limitsOf(config)) {
    routes.forEach((route, index) => {
      const warn = (message: string) =>
        report('limits', ['limits', name, 'routes', index], message, 'warning')
      const access = ownMember(config.routes.routes, route)?.access
      if (access === undefined) return
      if (access !== 'public' && by.join() === 'address') {
        warn(`counts refused requests only: all callers of ${route} are signed in; set by: user`)
      }
      if (access === 'public' && !by.includes('address')) {
        warn(`counts nobody: ${route} is public, so its callers have no session; set by: address`)
      }
    })
  }
}

/** Warns of sign-ins that no limit and no lockout counts. */
function checkGuessing({ limits }: LimitsAndRoutes, report: Report): void {
  const { lockout } = limits
  const isAddressCounted = Object.values(limits.limits).some(
    ({ mode, by, routes }) =>
      mode === 'enforce' && by.join() === 'address' && routes.includes('login')
  )
  for (const whom of ['address', 'account'] as const) {
    if (lockout[whom] !== 'off' || (whom === 'address' && isAddressCounted)) continue
    const message = `nothing counts sign-ins by ${whom}: passwords can be guessed without limit`
    report('limits', ['lockout', whom], message, 'warning')
  }
}

/** Whether two limits hold for the same callers and requests. */
function isSame(a: LimitConfig, b: Omit<LimitConfig, 'mode' | 'max' | 'window'>): boolean {
  const facts = ({ by, burst, routes, methods, roles }: typeof b) =>
    JSON.stringify([by.toSorted(), burst, routes.toSorted(), methods.toSorted(), roles.toSorted()])
  return facts(a) === facts(b)
}
