/** HOST:PORT, the form of listeners and Redis nodes in config. */
import { BlockList, isIP } from 'node:net'

export interface HostPort {
  /** An IPv6 address without its brackets. */
  readonly host: string
  readonly port: number
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

export const isPort = (port: number): boolean => port <= 65_535

export function splitHostPort(written: string): HostPort {
  const colon = written.lastIndexOf(':')
  return {
    host: written.slice(0, colon).replace(/^\[|\]$/g, ''),
    port: Number(written.slice(colon + 1))
  }
}

/** @param host without brackets */
export function isLoopback(host: string): boolean {
  if (isIP(host) === 0) return host === 'localhost'
  return loopback.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4')
}
