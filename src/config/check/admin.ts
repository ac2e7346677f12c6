/** Rules for the operators' listener. */
import { BlockList, isIP } from 'node:net'
import type { GatewayConfig } from '../schema/gateway.ts'
import { splitHostPort } from '../schema/host-port.ts'
import { ownMember } from '../schema/node.ts'
import { opsCookie } from '../schema/ops.ts'
import type { CheckedConfig, Report } from './report.ts'

const secretPattern = /^[\x21-\x7e]{32,}$/
const hostPattern = /^(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])$/

type Config = Pick<CheckedConfig, 'gateway' | 'limits'>

export function checkOps({ gateway, limits }: Config, report: Report): void {
  const { ops } = gateway
  if (ops.secret !== undefined && !secretPattern.test(ops.secret)) {
    const message =
      'has to be at least 32 visible ASCII characters without blanks; ' +
      'make one with `console-gateway generate-secret`'
    report('gateway', ['ops', 'secret'], message)
  }
  ops.hosts.forEach((host, index) => {
    if (hostPattern.test(host)) return
    const message = 'expected a host name alone, without scheme, port or path'
    report('gateway', ['ops', 'hosts', index], message)
  })
  checkOperators(gateway, report)
  checkCookies({ gateway, limits }, report)
}

function checkOperators({ ops, login }: GatewayConfig, report: Report): void {
  ops.sources.forEach((name, index) => {
    const place = ['ops', 'sources', index]
    const kind = ownMember(login.sources, name)?.kind
    if (kind === undefined) {
      report('gateway', place, `there is no source "${name}" in login.sources`)
    } else if (kind === 'upstream-login') {
      const message =
        'whoever gives the role of `ops.role` in this back-end makes operators of the gateway: ' +
        'they close sessions and reload config. Leave it out unless that is meant'
      report('gateway', place, message, 'warning')
    }
  })
  if (ops.role === undefined) {
    if (ops.sources.length > 0) {
      report('gateway', ['ops', 'sources'], 'has no effect without `ops.role`', 'warning')
    }
    return
  }
  const hasUsersFile = Object.values(login.sources).some(({ kind }) => kind === 'users-file')
  if (ops.sources.length === 0 && !hasUsersFile) {
    const message = 'nobody can have it: no source of kind users-file, and `ops.sources` is empty'
    report('gateway', ['ops', 'role'], message, 'warning')
  }
  const { host } = splitHostPort(ops.listen)
  if (ops.tls === undefined && ops.trustedProxies.length === 0 && !isLoopback(host)) {
    const message =
      `passwords of operators would cross the network in clear: ops.listen is "${ops.listen}". ` +
      'Set `ops.tls`, or `ops.trustedProxies` to the proxy that ends TLS, or listen on 127.0.0.1'
    report('gateway', ['ops', 'role'], message)
  }
}

/** Cookies do not know ports: browsers send `console_ops` to the console's port as well. */
function checkCookies({ gateway }: Config, report: Report): void {
  if (gateway.session.cookie.name === opsCookie) {
    const message = 'is the cookie of the operators’ page: choose another name'
    report('gateway', ['session', 'cookie', 'name'], message)
  }
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

function isLoopback(host: string): boolean {
  const version = isIP(host)
  return version === 0
    ? host === 'localhost'
    : loopback.check(host, version === 6 ? 'ipv6' : 'ipv4')
}
