import { type GatewayConfig, usesRedis } from '../schema/gateway.ts'
import { isLoopback, splitHostPort } from '../schema/host-port.ts'
import type { CheckedConfig, Report } from '../schema/config.ts'

function checkSession(gateway: GatewayConfig, report: Report): void {
  const { secrets, idle, absolute, cookie } = gateway.session
  if (usesRedis(gateway) && secrets.length === 0) {
    const message =
      'with Redis, sessions outlive this process, so the secret must not change at a restart: ' +
      'set ${SESSION_SECRET} or file:PATH; make one with `console-gateway generate-secret`'
    report(['session', 'secrets'], message)
  }
  if (idle > absolute) {
    const how = { warning: true, also: ['session', 'absolute'] }
    report(['session', 'idle'], 'is longer than session.absolute, so it never applies', how)
  }
  if (cookie.sameSite === 'none' && !cookie.secure) {
    const message = 'browsers refuse SameSite=None without Secure: set session.cookie.secure: true'
    report(['session', 'cookie', 'sameSite'], message)
  }
}

function checkOps({ ops, server }: GatewayConfig, report: Report): void {
  if (server.listen === ops.listen && splitHostPort(ops.listen).port !== 0) {
    const message = 'is the same as server.listen: the operators’ listener needs a port of its own'
    report(['ops', 'listen'], message, { also: ['server', 'listen'] })
  }
}

function checkConsole({ console: pages, login }: GatewayConfig, report: Report): void {
  const { signIn = '' } = pages ?? {}
  const source = login.sources[signIn]
  if (source === undefined || source.kind === 'oidc') return
  report(['console', 'signIn'], 'has to be a source of kind oidc: others have no page to sign in')
}

function checkOperators({ ops, login }: GatewayConfig, report: Report): void {
  ops.sources.forEach((name, index) => {
    const kind = login.sources[name]?.kind ?? 'users-file'
    if (kind === 'users-file') return
    const message =
      'whoever gives the role of `ops.role` at this source makes operators of the gateway: ' +
      'they close sessions and reload config. Leave it out unless that is meant'
    report(['ops', 'sources', index], message, { warning: true })
  })
  if (ops.role === undefined) return
  const hasUsersFile = Object.values(login.sources).some(({ kind }) => kind === 'users-file')
  if (ops.sources.length === 0 && !hasUsersFile) {
    const message = 'nobody can have it: no source of kind users-file, and `ops.sources` is empty'
    report(['ops', 'role'], message, { warning: true })
  }
  const isEncrypted = ops.tls !== undefined || ops.trustedProxies.length > 0
  if (isEncrypted || isLoopback(splitHostPort(ops.listen).host)) return
  const message =
    `passwords of operators would cross the network in clear: ops.listen is "${ops.listen}". ` +
    'Set `ops.tls`, or `ops.trustedProxies` to the proxy that ends TLS, or listen on 127.0.0.1'
  report(['ops', 'role'], message)
}

function checkRedis({ redis }: GatewayConfig, report: Report): void {
  if (redis === undefined) return
  const kinds = [redis.url !== '', redis.sentinels.length > 0, redis.cluster.length > 0]
  if (kinds.filter(Boolean).length > 1) {
    report(['redis'], 'url, sentinels and cluster exclude each other: set one of them')
  }
}

function checkIdentity({ identity }: GatewayConfig, report: Report): void {
  const { id, username, roles, source } = identity
  const names = [id, username, roles, ...(source === undefined ? [] : [source])]
  if (new Set(names).size === names.length) return
  const parts = source === undefined ? 'username and roles' : 'username, roles and source'
  report(['identity'], `id, ${parts} need a different header each`)
}

const memberPath = /^[^.\s]+(\.[^.\s]+)*$/
const secretNames = /password|passwd|secret|token|credential|pwd/i

function checkLedger({ audit }: GatewayConfig, report: Report): void {
  if (audit === undefined) return
  for (const [route, members] of Object.entries(audit.fields)) {
    for (const [member, how] of Object.entries(members)) {
      const place = ['audit', 'fields', route, member]
      if (!memberPath.test(member)) {
        report(place, 'expected names joined by dots, such as customer.iban')
      } else if (secretNames.test(member) && how !== 'hash') {
        const message = 'looks like a secret, which must not stand in a ledger'
        report(place, message, { warning: true })
      }
    }
  }
}

const rules = [
  checkSession,
  checkOps,
  checkOperators,
  checkConsole,
  checkRedis,
  checkIdentity,
  checkLedger
]

export function checkGateway({ gateway }: CheckedConfig, report: Report): void {
  for (const rule of rules) rule(gateway, report)
}
