/** The listeners of a public server: one for the console, and one that redirects to its https. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { createHttpsRedirect } from '../../app/https-redirect.ts'
import { createConnections } from '../../app/connections.ts'
import type { ShedLog } from '../../app/shed-log.ts'
import { createListener, isTlsServer, setCertificate } from '../../app/listener.ts'
import type { Config } from '../../config/schema/config.ts'
import { splitHostPort } from '../../config/schema/host-port.ts'
import type { Services } from '../../services/services.ts'

/** Descriptors of sockets that listen already, by what they are for. */
export interface HeldSockets {
  readonly console?: number
  readonly redirect?: number
  readonly ops?: number
}

/** A connection that was just accepted brings its request within this time. */
const beginMs = 50

/** @param handle answers a request of the console */
export function createListeners(
  config: Config,
  handle: (request: IncomingMessage, response: ServerResponse) => void,
  services: Pick<Services, 'log' | 'failures' | 'metrics'>,
  shed: ShedLog
) {
  const { server: settings } = config.gateway
  const connections = createConnections({
    max: settings.maxConnections,
    trustedProxies: settings.trustedProxies,
    ipv6Prefix: config.limits.ipv6Prefix,
    onRefused: address => shed.count('connections', { address })
  })
  const server = createListener(config, { handle, takesUpgrades: true }, services)
  const redirect = settings.tls?.redirect
  const redirectServer =
    redirect === undefined ? undefined : createHttpsRedirect(settings, services)
  let { serverTls } = config
  let lingerMs = 0
  connections.add(server)
  if (redirectServer !== undefined) connections.add(redirectServer)

  return {
    /** @returns the address for the console, with the real port. @throws when it cannot listen */
    listen: async (held: HeldSockets): Promise<string> => {
      if (redirect !== undefined && redirectServer !== undefined) {
        await listen(redirectServer, splitHostPort(redirect), held.redirect)
      }
      return await listen(server, splitHostPort(settings.listen), held.console)
    },
    /** Takes the certificate of a new config, if it is another one. */
    activate: (next: Config) => {
      if (next.serverTls === undefined || isDeepStrictEqual(next.serverTls, serverTls)) return
      setCertificate(server, next.serverTls)
      serverTls = next.serverTls
    },
    /** From now on each response is the last one of its connection. */
    leave: () => {
      server.prependListener('request', (_request, response: ServerResponse) => {
        response.shouldKeepAlive = false
      })
      lingerMs = beginMs
    },
    /** @returns whether all connections ended within the time; what is left then is cut */
    stop: async (graceMs: number): Promise<boolean> => {
      if (redirectServer !== undefined) void closeServer(redirectServer, 0)
      const closed = closeServer(server, lingerMs)
      const limit = wait(graceMs, false, { ref: false })
      const inTime = await Promise.race([closed.then(() => true), limit])
      connections.destroyAll()
      server.closeAllConnections()
      redirectServer?.closeAllConnections()
      await closed
      return inTime
    }
  }
}

/** @param fd of a socket that listens already */
export async function listen(
  server: Pick<Server, 'once' | 'listen' | 'removeListener' | 'address'>,
  { host, port }: { host: string; port: number },
  fd: number | undefined
): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(fd === undefined ? { port, host } : { fd }, () => {
      server.removeListener('error', reject)
      resolve()
    })
  })
  return urlOf(host, server)
}

/** The listener's address with the real port, also when config says 0. */
export function urlOf(host: string, server: { address: Server['address'] }): string {
  const { port } = server.address() as AddressInfo
  const scheme = isTlsServer(server) ? 'https' : 'http'
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

async function closeServer(server: Server, lingerMs: number): Promise<void> {
  if (!server.listening) return
  const closed = Promise.withResolvers<void>()
  const closeUnused = server.closeIdleConnections.bind(server)
  // Node's `close` calls it at once: a request that is on its way would be reset.
  if (lingerMs > 0) server.closeIdleConnections = () => {}
  server.close(() => closed.resolve())
  await wait(lingerMs)
  closeUnused()
  await closed.promise
}
