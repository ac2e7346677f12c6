/** HOST:PORT, the form of listeners and Redis nodes in config. */

export interface HostPort {
  /** An IPv6 address without its brackets. */
  readonly host: string
  readonly port: number
}

export const isPort = (port: number): boolean => port <= 65_535

export function splitHostPort(written: string): HostPort {
  const colon = written.lastIndexOf(':')
  return {
    host: written.slice(0, colon).replace(/^\[|\]$/g, ''),
    port: Number(written.slice(colon + 1))
  }
}
