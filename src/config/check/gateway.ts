import { statSync } from 'node:fs'
import { relative } from 'node:path'
import type { Rule } from '../schema/config.ts'
import { operatorSources, redisKeys } from '../schema/gateway.ts'
import { isLoopback, splitHostPort } from '../schema/host-port.ts'
import { fileIn } from '../schema/resolved.ts'

const checkSession: Rule = ({ gateway }, report) => {
  const { secrets, cookie } = gateway.session
  const servers = redisKeys(gateway)
  if (servers.length > 1) report(['redis'], `set only one of ${servers.join(', ')}`)
  if (servers.length > 0 && secrets.length === 0) {
    report(
      ['session', 'secrets'],
      'with Redis, set one: `console-gateway generate-secret` makes it'
    )
  }
  if (cookie.sameSite === 'none' && !cookie.secure) {
    report(['session', 'cookie', 'sameSite'], 'browsers refuse `none` without `secure: true`')
  }
}

const checkOps: Rule = ({ gateway: { ops, server, login } }, report) => {
  const ofOps = report.at('ops')
  ops.sources.forEach((name, index) => {
    if ((login.sources[name]?.kind ?? 'users-file') === 'users-file') return
    ofOps.warn(['sources', index], 'who gives `ops.role` there makes operators of the gateway')
  })
  if (ops.role !== undefined && operatorSources({ ops, login }).length === 0) {
    ofOps.warn(
      ['role'],
      'nobody can have it: no source is a users file, and `ops.sources` is empty'
    )
  }
  const { host, port } = splitHostPort(ops.listen)
  if (server.listen === ops.listen && port !== 0) {
    const message = 'the operators’ listener needs a port of its own'
    report(['ops', 'listen'], message, ['server', 'listen'])
  }
  if (isLoopback(host)) return
  if (ops.secret === undefined) {
    ofOps.warn(['listen'], 'other machines can reach it, and `ops.secret` is empty: set it')
  }
  if (ops.tls !== undefined || ops.trustedProxies.length > 0) return
  const message = 'would cross the network in clear: set `ops.tls`, or `ops.trustedProxies`'
  if (ops.role !== undefined) ofOps(['role'], `passwords of operators ${message}`)
  else if (ops.secret !== undefined) ofOps.warn(['secret'], message)
}

const checkConsole: Rule = (config, report) => {
  const { console: pages, login } = config.gateway
  if (pages === undefined) return
  const kind = login.sources[pages.signIn ?? '']?.kind ?? 'oidc'
  if (kind !== 'oidc') {
    report(['console', 'signIn'], 'has to be a source of kind oidc: others have no page to sign in')
  }
  const place = ['console', 'root']
  const root = fileIn(config, pages.root)
  if (!relative(root, config.folder).startsWith('..')) {
    report(place, 'contains the config folder: anyone could download its password hashes')
  } else if (statSync(root, { throwIfNoEntry: false })?.isDirectory() !== true) {
    report.warn(place, `there is no such folder: ${root}`)
  }
}

const checkIdentity: Rule = ({ gateway: { identity } }, report) => {
  const { prefix: _, ...headers } = identity
  const names = Object.values(headers)
  if (new Set(names).size === names.length) return
  report(['identity'], 'each of its headers needs a name of its own')
}

/** Without `server.tls` only a proxy in front speaks TLS, and then config should name it. */
const adviseOnCookie: Rule = ({ gateway: { session, server } }, report) => {
  if (!session.cookie.secure) {
    const message = 'the session cookie travels without https; fine on loopback, nowhere else'
    return report.warn(['session', 'cookie', 'secure'], message)
  }
  if (server.hosts.length === 0) {
    report.warn(['server', 'hosts'], 'is empty, so every well-formed Host is accepted: name yours')
  }
  if (server.tls !== undefined || server.trustedProxies.length > 0) return
  const message =
    'is empty, so no proxy ends TLS: browsers drop the secure cookie. Name the proxy; for ' +
    'development set session.cookie.secure: false'
  report.warn(['server', 'trustedProxies'], message)
}

const adviseOnProxies: Rule = ({ gateway: { server } }, report) => {
  server.trustedProxies.forEach((block, index) => {
    // The largest private network is fc00::/7.
    if (Number(block.split('/')[1] ?? 128) >= 7) return
    const message = `${block} is a large part of the internet: name your load balancers alone`
    report.warn(['server', 'trustedProxies', index], message)
  })
}

const adviseOnGuessing: Rule = ({ limits: { lockout, limits } }, report) => {
  const isAddressCounted = Object.values(limits).some(
    ({ mode, by, routes }) => mode === 'enforce' && by === 'address' && routes.includes('login')
  )
  for (const whom of ['address', 'account'] as const) {
    if (lockout[whom] !== 'off' || (whom === 'address' && isAddressCounted)) continue
    const message = `nothing counts sign-ins by ${whom}: passwords can be guessed without limit`
    report.warn(['lockout', whom], message)
  }
}

export const gatewayRules: readonly Rule[] = [
  checkSession,
  checkOps,
  checkConsole,
  checkIdentity,
  adviseOnCookie,
  adviseOnProxies,
  adviseOnGuessing
]
