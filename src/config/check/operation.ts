/** Warnings of likely mistakes: unused roles, too long time-outs, callers that share one address. */
import type { CheckedConfig, Report } from './report.ts'
import { nearest } from '../schema/faults.ts'

import { splitHostPort } from '../schema/host-port.ts'
import { partsOf } from '../schema/parts.ts'
import { inUnits } from '../schema/primitives.ts'
import { ownMember, type Path } from '../schema/visit.ts'

type Operated = Omit<CheckedConfig, 'folder'>

/** The default response time-out of nginx, HAProxy's example, AWS and Google Cloud. */
const balancerMs = 60_000

export function checkOperation(config: Operated, report: Report): void {
  for (const rule of [checkRoles, checkTimes, checkTotals, checkCallers]) rule(config, report)
}

/** Only for users files: a back-end's sign-in may give any role. */
function checkRoles(
  { gateway: { login }, routes: { routes, maintenance }, limits: { limits }, users }: Operated,
  report: Report
): void {
  if (login.sources.some(({ kind }) => kind !== 'users-file')) return
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

function checkTimes({ routes }: Operated, report: Report): void {
  const warnIfLong = (path: Path, timeoutMs = 0) => {
    if (timeoutMs > balancerMs) {
      report(
        'routes',
        path,
        `is longer than the ${inUnits('x-duration', balancerMs)} that load balancers usually ` +
          'wait: set a longer time-out in yours',
        'warning'
      )
    }
  }
  for (const [name, { responseTimeout }] of Object.entries(routes.upstreams)) {
    warnIfLong(['upstreams', name, 'responseTimeout'], responseTimeout)
  }
  for (const [name, { timeout }] of Object.entries(routes.routes)) {
    warnIfLong(['routes', name, 'timeout'], timeout)
  }
  warnIfLong(['endpoints', 'profile', 'timeout'], routes.endpoints.profile.timeout)
  for (const { place, part } of partsOf(routes)) warnIfLong([...place, 'timeout'], part.timeout)
}

/** A total below the time of the first byte: no request gets the time that config names. */
function checkTotals({ routes: { routes, upstreams } }: Operated, report: Report): void {
  const warnIfShort = (place: Path, firstMs: number, totalMs = Infinity) => {
    if (totalMs >= firstMs) return
    const [first, total] = [inUnits('x-duration', firstMs), inUnits('x-duration', totalMs)]
    const message = `the whole response may take ${total}, less than its first byte (${first})`
    report('routes', place, message, 'warning')
  }
  for (const [name, { totalTimeout, responseTimeout }] of Object.entries(upstreams)) {
    warnIfShort(['upstreams', name, 'totalTimeout'], responseTimeout, totalTimeout)
  }
  for (const [name, { totalTimeout, timeout, upstream = '' }] of Object.entries(routes)) {
    // Where the route sets neither, the upstream's warning says it.
    if (totalTimeout === undefined && timeout === undefined) continue
    const key = totalTimeout === undefined ? 'timeout' : 'totalTimeout'
    const ofUpstream = ownMember(upstreams, upstream)
    const firstMs = timeout ?? ofUpstream?.responseTimeout ?? 0
    const totalMs = totalTimeout ?? ofUpstream?.totalTimeout
    warnIfShort(['routes', name, key], firstMs, totalMs)
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
  if (!isLocal && server.keepAlive <= balancerMs) {
    report(
      'gateway',
      ['server', 'keepAlive'],
      `is not longer than the ${inUnits('x-duration', balancerMs)} for which load balancers ` +
        'usually keep a connection: one that uses a connection just closed answers 502; ' +
        'set a longer time',
      'warning'
    )
  }
}
