/** Rules for limits: one that can never act, or that counts nobody, is told before it is relied on. */
import type { Report } from './report.ts'
import { nearest } from '../schema/faults.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import type { LimitConfig, LimitsConfig } from '../schema/limits.ts'
import { endpointNames } from '../schema/endpoints.ts'
import type { RoutesConfig } from '../schema/routes.ts'

interface Checked {
  readonly gateway: GatewayConfig
  readonly routes: RoutesConfig
  readonly limits: LimitsConfig
}

export function checkLimits({ gateway, routes, limits }: Checked, report: Report): void {
  const known = [...endpointNames, ...Object.keys(routes.routes)]
  const entries = Object.entries(limits.limits)
  for (const [name, limit] of entries) {
    const { window, burst } = limit
    const said = (key: string, message: string, severity?: 'warning') =>
      report('limits', ['limits', name, key], message, severity)
    const by = [limit.by].flat()
    limit.routes.forEach((route, index) => {
      if (!known.includes(route))
        report(
          'limits',
          ['limits', name, 'routes', index],
          `there is no route "${route}".${nearest(route, known)}`
        )
    })
    const onlyLogin = limit.routes.length === 1 && limit.routes[0] === 'login'
    const ofSignIn = by.includes('account') || limit.refusedOnly
    if (by.includes('account') && !onlyLogin)
      said('routes', 'only a sign-in tries an account: set routes: [login]')
    if (limit.refusedOnly && !onlyLogin)
      said('refusedOnly', 'only a sign-in is refused: set routes: [login]')
    if ((by.includes('user') || by.includes('session')) && onlyLogin)
      said('by', 'counts nobody, since sign-in has no user yet; set by: address or by: account')
    if (ofSignIn && (limit.kind !== 'fixed' || burst !== undefined))
      said(burst === undefined ? 'kind' : 'burst', 'sign-in attempts are counted in fixed windows')
    if (limit.roles.length > 0 && !by.includes('user') && !by.includes('session'))
      said('roles', 'only signed-in callers have roles: set by: user or by: session')
    if (window === 0) said('window', 'must be longer than 0')
    if (burst !== undefined && limit.kind === 'sliding')
      said('burst', 'excludes kind: leave one of them out')
    if (burst !== undefined && burst > limit.max)
      said('burst', 'is more than max: the bucket would hold more than a whole window brings')
    const tighter = entries.find(
      ([other, { max, window: its, ...rest }]) =>
        other !== name &&
        isSame(limit, rest) &&
        rest.mode === 'enforce' &&
        max <= limit.max &&
        its >= window &&
        (max < limit.max || its > window)
    )
    if (limit.mode === 'enforce' && tighter !== undefined) {
      const message = `can never be reached: ${tighter[0]} is tighter for the same callers`
      const how = { severity: 'warning', also: ['limits', tighter[0], 'max'] } as const
      report('limits', ['limits', name, 'max'], message, how)
    }
    for (const [index, route] of limit.routes.entries()) {
      const access = routes.routes[route]?.access
      if (access !== undefined && access !== 'public' && by.length === 1 && by[0] === 'address')
        report(
          'limits',
          ['limits', name, 'routes', index],
          `counts refused requests only: all callers of ${route} are signed in; set by: user`,
          'warning'
        )
      if (access === 'public' && !by.includes('address'))
        report(
          'limits',
          ['limits', name, 'routes', index],
          `counts nobody: on ${route}, which is public, no session is looked up; set by: address`,
          'warning'
        )
    }
  }
  for (const route of Object.keys(limits.inFlightPerRoute))
    if (!known.includes(route))
      report(
        'limits',
        ['inFlightPerRoute', route],
        `there is no route "${route}".${nearest(route, known)}`
      )
  if (limits.endedSessions.window === 0) {
    report('limits', ['endedSessions', 'window'], 'must be longer than 0')
  }
  checkLockout({ gateway, limits }, report)
  for (const whom of ['address', 'account'] as const) {
    const counts = ({ mode, by, routes: of }: LimitConfig) =>
      mode === 'enforce' && [by].flat().includes(whom) && of.includes('login')
    const guarded =
      limits.lockout[whom].mode === 'enforce' || entries.some(([, limit]) => counts(limit))
    if (!guarded)
      report(
        'limits',
        ['lockout', whom, 'mode'],
        `nothing counts sign-ins by ${whom}: passwords can be guessed without end`,
        'warning'
      )
  }
}

function checkLockout(
  { gateway, limits: { lockout } }: Pick<Checked, 'gateway' | 'limits'>,
  report: Report
): void {
  for (const whom of ['account', 'address'] as const) {
    const { mode, within, delay, longest } = lockout[whom]
    if (mode === 'off') continue
    if (within === 0) report('limits', ['lockout', whom, 'within'], 'must be longer than 0')
    if (delay === 0)
      report(
        'limits',
        ['lockout', whom, 'delay'],
        'must be longer than 0; to lock nobody set mode: off'
      )
    if (longest < delay) {
      const how = { also: ['lockout', whom, 'delay'] }
      report('limits', ['lockout', whom, 'longest'], 'is shorter than delay, the first lock', how)
    }
  }
  const { mode, cookie, lifetime } = lockout.knownBrowser
  if (mode === 'off') return
  if (lifetime === 0)
    report(
      'limits',
      ['lockout', 'knownBrowser', 'lifetime'],
      'must be longer than 0; to know no browser set mode: off'
    )
  if (cookie === gateway.session.cookie.name || gateway.envelope.tokenCookies.includes(cookie))
    report(
      'limits',
      ['lockout', 'knownBrowser', 'cookie'],
      `"${cookie}" is the name of another cookie: choose another name`
    )
}

/** Whether two limits hold for the same callers and requests. */
function isSame(a: LimitConfig, b: Omit<LimitConfig, 'max' | 'window'>): boolean {
  const facts = ({ by, kind, burst, routes, methods, roles, refusedOnly }: typeof b) =>
    JSON.stringify([
      [by].flat().toSorted(),
      kind,
      burst,
      routes.toSorted(),
      methods.toSorted(),
      roles.toSorted(),
      refusedOnly
    ])
  return facts(a) === facts(b)
}
