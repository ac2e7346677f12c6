import { BlockList, isIP } from 'node:net'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/** @returns an IPv6 address without its brackets */
export function splitHostPort(written: string) {
  const colon = written.lastIndexOf(':')
  return {
    host: written.slice(0, colon).replace(/^\[|\]$/g, ''),
    port: Number(written.slice(colon + 1))
  }
}

/** A name as in `Host`: an IPv6 address has its brackets. */
export function splitPublicHost(written: string): { name: string; port?: number } {
  const [whole, port] = /:(\d{1,5})$/.exec(written) ?? []
  if (whole === undefined) return { name: written }
  return { name: written.slice(0, -whole.length), port: Number(port) }
}

/** @param written a name, or an address with or without brackets */
export function isLoopback(written: string): boolean {
  const host = written.replace(/^\[|\]$/g, '')
  if (isIP(host) === 0) return host === 'localhost'
  return loopback.check(host, isIP(host) === 6 ? 'ipv6' : 'ipv4')
}
