/** Rules for limits: whom one counts, and whom it can be for. */
import type { CheckedConfig, Report } from './report.ts'

export function checkLimits(
  { limits: { limits } }: Pick<CheckedConfig, 'limits'>,
  report: Report
): void {
  for (const [name, { by, routes, roles, burst, max }] of Object.entries(limits)) {
    const fault = (key: string, message: string) => report(['limits', name, key], message)
    const isOfProfile = by.some(each => each.startsWith('profile.'))
    const isOfUsers = isOfProfile || by.some(each => ['user', 'session', 'key'].includes(each))
    if (isOfUsers && routes.join() === 'login') {
      fault('by', 'counts nobody, since sign-in has no user yet; set by: address')
    }
    if (isOfProfile && by.filter(each => each !== 'address').length > 1) {
      fault('by', 'a member of the profile stands alone, or beside address')
    }
    if (roles.length > 0 && !isOfUsers) {
      fault('roles', 'only signed-in callers have roles: set by: user or by: session')
    }
    if (burst !== undefined && burst > max) {
      fault('burst', 'is more than max: the bucket would hold more than one window refills')
    }
  }
}
