/** What is no fault, but likely not what was meant: roles that nobody has, time-outs that outlast the load balancer's, callers that cannot be told apart. */
import type { Report } from './report.ts'
import { nearest } from '../schema/faults.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import type { LimitsConfig } from '../schema/limits.ts'
import { splitHostPort } from '../schema/host-port.ts'
import { partsOf } from '../schema/parts.ts'
import { inUnits } from '../schema/primitives.ts'
import type { RoutesConfig } from '../schema/routes.ts'
import type { UsersConfig } from '../schema/users.ts'
import type { Path } from '../schema/visit.ts'

interface Checked {
  readonly gateway: GatewayConfig
  readonly routes: RoutesConfig
  readonly limits: LimitsConfig
  readonly users: Readonly<Record<string, UsersConfig>>
}

/** What nginx, HAProxy's example, AWS and Google Cloud wait for a back-end, unless told otherwise. */
const balancerMs = 60_000

export function checkOperation(config: Checked, report: Report): void {
  for (const rule of [checkRoles, checkTimes, checkCallers]) rule(config, report)
}

/** A back-end's own sign-in may give any role. */
function checkRoles(
  { gateway: { login }, routes: { routes, maintenance }, limits: { limits }, users }: Checked,
  report: Report
): void {
  if (login.sources.some(({ kind }) => kind !== 'users-file')) return
  const known = new Set(
    Object.values(users).flatMap(file => Object.values(file.users).flatMap(({ roles }) => roles))
  )
  // Whoever has no users yet is told enough.
  if (known.size === 0) return
  const look = (file: 'routes' | 'limits', path: Path, roles: readonly string[]) => {
    for (const role of roles) {
      if (!known.has(role)) {
        report(file, path, `no user has the role "${role}".${nearest(role, known)}`, 'warning')
      }
    }
  }
  for (const [name, { access }] of Object.entries(routes)) {
    if (typeof access === 'object') {
      look('routes', ['routes', name, 'access', 'roles'], access.roles)
    }
  }
  for (const [name, { roles }] of Object.entries(limits)) {
    look('limits', ['limits', name, 'roles'], roles)
  }
  if (maintenance !== undefined) {
    look('routes', ['maintenance', 'allowRoles'], maintenance.allowRoles)
  }
}

function checkTimes({ routes }: Checked, report: Report): void {
  const look = (path: Path, timeoutMs = 0) => {
    if (timeoutMs > balancerMs) {
      report(
        'routes',
        path,
        `is longer than the ${inUnits('x-duration', balancerMs)} that load balancers usually wait: theirs has to be longer`,
        'warning'
      )
    }
  }
  for (const [name, { responseTimeout }] of Object.entries(routes.upstreams)) {
    look(['upstreams', name, 'responseTimeout'], responseTimeout)
  }
  for (const [name, { timeout }] of Object.entries(routes.routes)) {
    look(['routes', name, 'timeout'], timeout)
  }
  look(['endpoints', 'profile', 'timeout'], routes.endpoints.profile.timeout)
  for (const { place, part } of partsOf(routes)) look([...place, 'timeout'], part.timeout)
}

function checkCallers({ gateway: { server }, limits: { limits } }: Checked, report: Report): void {
  const { host } = splitHostPort(server.listen)
  const isLocal = host === 'localhost' || host.startsWith('127.') || host === '::1'
  const byAddress = Object.values(limits).some(
    ({ by, mode }) => mode !== 'off' && by.includes('address')
  )
  if (!isLocal && byAddress && server.trustedProxies.length === 0) {
    report(
      'gateway',
      ['server', 'trustedProxies'],
      'empty: if a load balancer stands in front, all its callers count as one address; name it',
      'warning'
    )
  }
  if (!isLocal && server.keepAlive <= balancerMs) {
    report(
      'gateway',
      ['server', 'keepAlive'],
      `is not longer than the ${inUnits('x-duration', balancerMs)} for which load balancers usually keep a connection: now and then one uses a connection that has just been closed, and its user gets a 502`,
      'warning'
    )
  }
}
