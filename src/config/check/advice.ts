/** Warnings of settings that are valid, but together unsafe, or useless in a browser. */
import { statSync } from 'node:fs'
import { relative, sep } from 'node:path'
import { isLoopback, splitHostPort } from '../schema/host-port.ts'
import { fileIn } from '../schema/resolved.ts'
import type { CheckedConfig, Report } from '../schema/config.ts'

/** Without `server.tls` only a proxy in front speaks TLS, and then config should name it. */
function adviseOnCookie({ gateway: { session, server } }: CheckedConfig, warn: Report): void {
  if (!session.cookie.secure) {
    const message = 'the session cookie travels without https; fine on loopback, nowhere else'
    return warn(['session', 'cookie', 'secure'], message)
  }
  if (server.hosts.length === 0) {
    const message = 'is empty, so every well-formed Host is accepted: name your own'
    warn(['server', 'hosts'], message)
  }
  if (server.tls !== undefined || server.trustedProxies.length > 0) return
  const message =
    'is empty, so no proxy ends TLS: over plain http, browsers drop the secure session cookie ' +
    'and each sign-in leads back to the sign-in page. Name the proxy that ends TLS; for ' +
    'development without one set session.cookie.secure: false'
  warn(['server', 'trustedProxies'], message)
}

/** The prefixes of the largest private networks, 10.0.0.0/8 and fc00::/7. */
const minPrefixBits = { ipv4: 8, ipv6: 7 }

function adviseOnProxies({ gateway: { server }, limits }: CheckedConfig, warn: Report): void {
  server.trustedProxies.forEach((block, index) => {
    const [address = '', bits] = block.split('/')
    const minBits = address.includes(':') ? minPrefixBits.ipv6 : minPrefixBits.ipv4
    if (bits === undefined || Number(bits) >= minBits) return
    const message =
      `${block} is a large part of the internet: clients there can forge the address ` +
      'that limits and lockouts count. Name only your load balancers'
    warn(['server', 'trustedProxies', index], message)
  })
  const isCounted = Object.values(limits.limits).some(
    ({ by, mode }) => mode !== 'off' && by.includes('address')
  )
  if (isLoopback(splitHostPort(server.listen).host) || !isCounted) return
  if (server.trustedProxies.length > 0) return
  const message =
    'is empty: if a load balancer stands in front, all clients count as one address; name it'
  warn(['server', 'trustedProxies'], message)
}

function adviseOnOps({ gateway: { ops } }: CheckedConfig, warn: Report): void {
  if (isLoopback(splitHostPort(ops.listen).host) || ops.secret !== undefined) return
  const message =
    `${ops.listen} can be reached from other machines, and ops.secret is empty: each start makes ` +
    'a random secret, so other machines get health checks only. Set ops.secret, or listen on ' +
    '127.0.0.1. Never open this port to public networks'
  warn(['ops', 'listen'], message)
}

function adviseOnGuessing({ limits: { lockout, limits } }: CheckedConfig, warn: Report): void {
  const isAddressCounted = Object.values(limits).some(
    ({ mode, by, routes }) =>
      mode === 'enforce' && by.join() === 'address' && routes.includes('login')
  )
  for (const whom of ['address', 'account'] as const) {
    if (lockout[whom] !== 'off' || (whom === 'address' && isAddressCounted)) continue
    const message = `nothing counts sign-ins by ${whom}: passwords can be guessed without limit`
    warn(['lockout', whom], message)
  }
}

function checkConsole(config: CheckedConfig, report: Report): void {
  const { console } = config.gateway
  if (console === undefined) return
  const place = ['console', 'root']
  const root = fileIn(config, console.root)
  const fromRoot = relative(root, config.folder)
  if (fromRoot !== '..' && !fromRoot.startsWith(`..${sep}`)) {
    const message =
      'contains the config folder: anyone could download users.yaml with its password ' +
      'hashes. Name only the folder of the built console'
    return report(place, message)
  }
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory() === true) return
  report(place, `there is no such folder: ${root}`, { warning: true })
}

const rules = [adviseOnCookie, adviseOnProxies, adviseOnOps, adviseOnGuessing]

export function checkAdvice(config: CheckedConfig, report: Report): void {
  const warn: Report = (path, message) => report(path, message, { warning: true })
  for (const rule of rules) rule(config, warn)
  checkConsole(config, report)
}
