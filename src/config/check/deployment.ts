/** Rules for settings that are valid one by one, but together unsafe or useless in a browser. */
import { statSync } from 'node:fs'
import { isIP } from 'node:net'
import { relative, resolve, sep } from 'node:path'
import type { CheckedConfig, Report } from './report.ts'

export function checkDeployment(config: CheckedConfig, report: Report): void {
  for (const rule of [checkSecureCookie, checkTrustedProxies, checkConsole, checkOpsListen]) {
    rule(config, report)
  }
}

/** Without `server.tls` only a proxy in front speaks TLS, and then config should name it. */
function checkSecureCookie({ gateway: { session, server } }: CheckedConfig, report: Report): void {
  const hasTls = server.tls !== undefined || server.trustedProxies.length > 0
  if (!session.cookie.secure || hasTls) return
  const message =
    'is empty, so no proxy ends TLS: over plain http, browsers drop the secure session cookie ' +
    'and each sign-in leads back to the sign-in page. Name the proxy that ends TLS; for ' +
    'development without one set session.cookie.secure: false'
  report(['server', 'trustedProxies'], message, { warning: true })
}

/** The prefixes of the largest private networks, 10.0.0.0/8 and fc00::/7. */
const minPrefixBits = { ipv4: 8, ipv6: 7 }

function checkTrustedProxies({ gateway: { server } }: CheckedConfig, report: Report): void {
  server.trustedProxies.forEach((block, index) => {
    const [address = '', bits] = block.split('/')
    // checkInstall reports what is not a valid block.
    if (isIP(address) === 0 || bits === undefined) return
    const minBits = isIP(address) === 6 ? minPrefixBits.ipv6 : minPrefixBits.ipv4
    if (!(Number(bits) < minBits)) return
    const message =
      `${block} is a large part of the internet: clients there can forge the address ` +
      'that limits and lockouts count. Name only your load balancers'
    report(['server', 'trustedProxies', index], message, { warning: true })
  })
}

function checkConsole(
  { folder, gateway: { console: files } }: CheckedConfig,
  report: Report
): void {
  if (files === undefined) return
  const root = resolve(folder, files.root)
  const fromRoot = relative(root, folder)
  if (fromRoot !== '..' && !fromRoot.startsWith(`..${sep}`)) {
    const message =
      'contains the config folder: anyone could download users.yaml with its password ' +
      'hashes. Name only the folder of the built console'
    return report(['console', 'root'], message)
  }
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory() === true) return
  report(['console', 'root'], `there is no such folder: ${root}`, { warning: true })
}

const loopback = /^(?:127\.|localhost:|\[::1\]:)/

function checkOpsListen({ gateway: { ops } }: CheckedConfig, report: Report): void {
  if (loopback.test(ops.listen) || ops.secret !== undefined) return
  const message =
    `${ops.listen} can be reached from other machines, and ops.secret is empty: each start makes ` +
    'a random secret, so other machines get health checks only. Set ops.secret, or listen on ' +
    '127.0.0.1. Never open this port to public networks'
  report(['ops', 'listen'], message, { warning: true })
}
