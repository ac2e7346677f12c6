/** Rules for the listeners, Redis, the envelope and the identity headers of `gateway.yaml`. */
import { isBlock } from '../schema/formats.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import { splitHostPort } from '../schema/host-port.ts'
import type { CheckedConfig, Report } from './report.ts'

type Install = Pick<CheckedConfig, 'gateway'>

export function checkInstall(config: Install, report: Report): void {
  for (const rule of [checkServer, checkPorts, checkTrustedProxies, checkRedis, checkIdentity]) {
    rule(config, report)
  }
}

function checkServer({ gateway }: Install, report: Report): void {
  const { server, session } = gateway
  if (server.hosts.length === 0 && session.cookie.secure) {
    report(['server', 'hosts'], 'is empty, so every well-formed Host is accepted: name your own', {
      warning: true
    })
  }
}

function checkPorts({ gateway: { server, ops } }: Install, report: Report): void {
  if (server.listen !== ops.listen || splitHostPort(ops.listen).port === 0) return
  const message = 'is the same as server.listen: the operators’ listener needs a port of its own'
  report(['ops', 'listen'], message, { also: ['server', 'listen'] })
}

function checkTrustedProxies({ gateway: { ops } }: Install, report: Report): void {
  ops.trustedProxies.forEach((block, index) => {
    if (isBlock(block)) return
    const message = `expected an address or a CIDR block such as 10.0.0.0/8, found "${block}"`
    report(['ops', 'trustedProxies', index], message)
  })
}

function checkRedis({ gateway: { redis } }: Install, report: Report): void {
  if (redis === undefined) return
  const kinds = [redis.url !== '', redis.sentinels.length > 0, redis.cluster.length > 0]
  if (kinds.filter(Boolean).length > 1) {
    report(['redis'], 'url, sentinels and cluster exclude each other: set one of them')
  }
}

const reservedHeaders = new Set([
  'host',
  'connection',
  'content-length',
  'content-type',
  'transfer-encoding',
  'cookie',
  'authorization',
  'expect',
  'te',
  'trailer',
  'upgrade',
  'accept',
  'accept-encoding',
  'x-request-id',
  'x-forwarded-for',
  'x-forwarded-proto',
  'x-forwarded-host'
])

function checkIdentity({ gateway: { identity } }: Install, report: Report): void {
  const { prefix: _, ...headers }: GatewayConfig['identity'] = identity
  const names = Object.values(headers).filter(name => name !== undefined)
  for (const [key, name] of Object.entries(headers)) {
    if (name === undefined || !reservedHeaders.has(name)) continue
    const message = `"${name}" cannot be used here: the gateway or HTTP itself uses it`
    report(['identity', key], message)
  }
  if (new Set(names).size === names.length) return
  const parts = headers.source === undefined ? 'username and roles' : 'username, roles and source'
  report(['identity'], `id, ${parts} need a different header each`)
}
