/** Warnings of likely mistakes: roles that nobody has, callers that share one address. */
import type { CheckedConfig, Report } from './report.ts'
import { nearest } from '../schema/faults.ts'

import { splitHostPort } from '../schema/host-port.ts'
import { endOf } from '../schema/maintenance.ts'
import type { Path } from '../schema/node.ts'

type Operated = Omit<CheckedConfig, 'folder'>

export function checkOperation(config: Operated, report: Report): void {
  for (const rule of [checkRoles, checkCallers, checkMaintenance]) rule(config, report)
}

/** Only for users files: a back-end's sign-in may give any role. */
function checkRoles(
  { gateway: { login }, routes: { routes, maintenance }, limits: { limits }, users }: Operated,
  report: Report
): void {
  if (Object.values(login.sources).some(({ kind }) => kind !== 'users-file')) return
  const userRoles = new Set(
    Object.values(users).flatMap(file => Object.values(file.users).flatMap(({ roles }) => roles))
  )
  // Without users every role would be reported.
  if (userRoles.size === 0) return
  const warnOfUnused = (file: 'routes' | 'limits', path: Path, roles: readonly string[]) => {
    for (const role of roles) {
      if (!userRoles.has(role)) {
        report(file, path, `no user has the role "${role}".${nearest(role, userRoles)}`, 'warning')
      }
    }
  }
  for (const [name, { access }] of Object.entries(routes)) {
    if (typeof access === 'object') {
      warnOfUnused('routes', ['routes', name, 'access', 'roles'], access.roles)
    }
  }
  for (const [name, { roles }] of Object.entries(limits)) {
    warnOfUnused('limits', ['limits', name, 'roles'], roles)
  }
  if (maintenance !== undefined) {
    warnOfUnused('routes', ['maintenance', 'allowRoles'], maintenance.allowRoles)
  }
}

function checkCallers({ gateway: { server }, limits: { limits } }: Operated, report: Report): void {
  const { host } = splitHostPort(server.listen)
  const isLocal = host === 'localhost' || host.startsWith('127.') || host === '::1'
  const byAddress = Object.values(limits).some(
    ({ by, mode }) => mode !== 'off' && by.includes('address')
  )
  if (!isLocal && byAddress && server.trustedProxies.length === 0) {
    report(
      'gateway',
      ['server', 'trustedProxies'],
      'is empty: if a load balancer stands in front, all clients count as one address; name it',
      'warning'
    )
  }
}

function checkMaintenance({ routes: { maintenance } }: Operated, report: Report): void {
  if (maintenance?.until === undefined || endOf(maintenance.until) >= Date.now()) return
  const message = 'is in the past: no route is closed'
  report('routes', ['maintenance', 'until'], message, 'warning')
}
