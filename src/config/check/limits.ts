/** Rules for limits: reports those that count no caller. */
import type { LimitConfig } from '../schema/limits.ts'
import { ownMember } from '../schema/node.ts'
import type { CheckedConfig, Report } from './report.ts'

type LimitsAndRoutes = Pick<CheckedConfig, 'gateway' | 'routes' | 'limits'>

export function checkLimits(config: LimitsAndRoutes, report: Report): void {
  for (const rule of [checkWhom, checkNumbers, checkAccess, checkGuessing]) rule(config, report)
}

type Named = readonly [name: string, limit: LimitConfig]

const limitsOf = ({ limits: { limits } }: LimitsAndRoutes): Named[] => Object.entries(limits)

/** Reports what is wrong with a key of one limit. */
const reportOf = (report: Report, name: string) => (key: string, message: string) =>
  report(['limits', name, key], message)

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

function checkAccess(config: LimitsAndRoutes, report: Report): void {
  for (const [name, { by, routes }] of limitsOf(config)) {
    routes.forEach((route, index) => {
      const warn = (message: string) =>
        report(['limits', name, 'routes', index], message, { warning: true })
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
    report(['lockout', whom], message, { warning: true })
  }
}
