/** Rules for the listeners, Redis, the envelope and the identity headers of `gateway.yaml`. */
import { isIP } from 'node:net'
import { errorKinds } from '../../errors/errors.ts'
import { nearest } from '../schema/faults.ts'
import type { GatewayConfig } from '../schema/gateway.ts'
import { isPort, splitHostPort } from '../schema/host-port.ts'
import { hostPattern } from './admin.ts'
import type { CheckedConfig, Report } from './report.ts'

type Install = Pick<CheckedConfig, 'gateway'>

export function checkInstall(config: Install, report: Report): void {
  for (const rule of [
    checkServer,
    checkPorts,
    checkOrigins,
    checkTrustedProxies,
    checkRedis,
    checkIdentity,
    checkMessages
  ]) {
    rule(config, report)
  }
}

function checkServer({ gateway }: Install, report: Report): void {
  const { server, session } = gateway
  if (server.hosts.length === 0 && session.cookie.secure) {
    report(
      'gateway',
      ['server', 'hosts'],
      'is empty, so every well-formed Host is accepted: name your own',
      'warning'
    )
  }
  server.hosts.forEach((host, index) => {
    if (hostPattern.test(host)) return
    const message = `expected a host name alone, without scheme, port or path, found "${host}"`
    report('gateway', ['server', 'hosts', index], message)
  })
}

function checkPorts({ gateway: { server, ops, redis } }: Install, report: Report): void {
  const nodesOf = (key: 'sentinels' | 'cluster') =>
    redis?.[key].map((node, index) => [['redis', key, index], node] as const) ?? []
  for (const [path, written] of [
    [['server', 'listen'], server.listen] as const,
    [['ops', 'listen'], ops.listen] as const,
    ...nodesOf('sentinels'),
    ...nodesOf('cluster')
  ]) {
    const { port } = splitHostPort(written)
    if (isPort(port)) continue
    report('gateway', path, `expected a port of at most 65535, found ${port}`)
  }
  if (server.listen === ops.listen && splitHostPort(ops.listen).port !== 0) {
    report(
      'gateway',
      ['ops', 'listen'],
      'is the same as server.listen: the operators’ listener needs a port of its own',
      { also: ['server', 'listen'] }
    )
  }
}

function checkOrigins({ gateway: { server } }: Install, report: Report): void {
  server.origins.forEach((origin, index) => {
    const canonical = URL.canParse(origin) ? new URL(origin).origin : undefined
    if (canonical === origin) return
    const message =
      canonical === undefined
        ? 'is not a valid URL: expected an origin such as https://console.example.com'
        : `expected the origin as browsers write it: ${canonical}`
    report('gateway', ['server', 'origins', index], message)
  })
}

function checkTrustedProxies({ gateway: { server, ops } }: Install, report: Report): void {
  for (const [section, { trustedProxies }] of Object.entries({ server, ops })) {
    trustedProxies.forEach((block, index) => {
      if (isBlock(block)) return
      const message = `expected an address or a CIDR block such as 10.0.0.0/8, found "${block}"`
      report('gateway', [section, 'trustedProxies', index], message)
    })
  }
}

function isBlock(block: string): boolean {
  const [address = '', bits, ...rest] = block.split('/')
  const version = isIP(address)
  if (version === 0 || rest.length > 0) return false
  if (bits === undefined) return true
  return /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128)
}

function checkRedis({ gateway: { redis } }: Install, report: Report): void {
  if (redis === undefined) return
  const kinds = [redis.url !== '', redis.sentinels.length > 0, redis.cluster.length > 0]
  if (kinds.filter(Boolean).length > 1) {
    report('gateway', ['redis'], 'url, sentinels and cluster exclude each other: set one of them')
  }
  if (redis.url !== '' && !URL.canParse(redis.url)) {
    report(
      'gateway',
      ['redis', 'url'],
      'is not a valid URL: expected one such as redis://redis.internal:6379'
    )
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
    report('gateway', ['identity', key], message)
  }
  if (new Set(names).size === names.length) return
  const parts = headers.source === undefined ? 'username and roles' : 'username, roles and source'
  report('gateway', ['identity'], `id, ${parts} need a different header each`)
}

function checkMessages({ gateway: { envelope } }: Install, report: Report): void {
  const codes = Object.keys(errorKinds)
  for (const code of Object.keys(envelope.messages)) {
    if (codes.includes(code)) continue
    const message = `there is no error code "${code}".${nearest(code, codes)}`
    report('gateway', ['envelope', 'messages', code], message)
  }
}
