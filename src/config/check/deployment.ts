/** What makes an installation unsafe, or useless in a browser, though every key by itself is sound. */
import { statSync } from 'node:fs'
import { isIP } from 'node:net'
import { relative, resolve, sep } from 'node:path'
import type { Checked, Report } from './report.ts'

export function checkDeployment(config: Checked, report: Report): void {
  for (const rule of [checkSecureCookie, checkTrustedProxies, checkConsole, checkOpsListen]) {
    rule(config, report)
  }
}

/** The gateway itself speaks no TLS: only a proxy in front can, and then config should name it. */
function checkSecureCookie({ gateway: { session, server } }: Checked, report: Report): void {
  if (!session.cookie.secure || server.trustedProxies.length > 0) return
  const message =
    'empty, and no TLS is in sight: over plain http browsers drop the secure session ' +
    'cookie, and each sign-in ends at the sign-in page again. Name the proxy that ends TLS; for ' +
    'development without one set session.cookie.secure: false'
  report('gateway', ['server', 'trustedProxies'], message, 'warning')
}

/** Private networks, 10.0.0.0/8 and fc00::/7, are not larger. */
const leastBits = { ipv4: 8, ipv6: 7 }

function checkTrustedProxies({ gateway: { server } }: Checked, report: Report): void {
  server.trustedProxies.forEach((block, index) => {
    const [address = '', bits] = block.split('/')
    // What is no block is told elsewhere.
    if (isIP(address) === 0 || bits === undefined) return
    const least = isIP(address) === 6 ? leastBits.ipv6 : leastBits.ipv4
    if (!(Number(bits) < least)) return
    const message =
      `${block} is most of the internet: whoever calls from there chooses the address ` +
      'by which limits and lockouts count them. Name the load balancers alone'
    report('gateway', ['server', 'trustedProxies', index], message, 'warning')
  })
}

function checkConsole({ folder, gateway: { console: files } }: Checked, report: Report): void {
  if (files === undefined) return
  const root = resolve(folder, files.root)
  const fromRoot = relative(root, folder)
  if (fromRoot !== '..' && !fromRoot.startsWith(`..${sep}`)) {
    const message =
      'the config folder lies in it: everybody could fetch users.yaml, with the ' +
      'password hashes. Name the folder of the built console alone'
    return report('gateway', ['console', 'root'], message)
  }
  if (statSync(root, { throwIfNoEntry: false })?.isDirectory() === true) return
  report('gateway', ['console', 'root'], `there is no such folder: ${root}`, 'warning')
}

const loopback = /^(?:127\.|localhost:|\[::1\]:)/

function checkOpsListen({ gateway: { ops } }: Checked, report: Report): void {
  if (loopback.test(ops.listen) || ops.secret !== undefined) return
  const message =
    `${ops.listen} is reached from other machines, and ops.secret is empty: one is made ` +
    'up at each start, so that nobody there gets more than health checks. Set ops.secret, or listen ' +
    'on 127.0.0.1; keep this port out of public networks in any case'
  report('gateway', ['ops', 'listen'], message, 'warning')
}
