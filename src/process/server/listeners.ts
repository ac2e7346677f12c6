/** The listeners of a public server: one for the console, and one that redirects to its https. */
import type { Server } from 'node:http'
import { type AddressInfo, Server as TcpServer, type Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { createHttpsRedirect } from '../../app/https-redirect.ts'
import { createPeerBound } from '../../app/overload/peers.ts'
import type { ShedLog } from '../../app/overload/shed-log.ts'
import { setCertificate } from '../../app/listener.ts'
import { isTlsServer, openSockets } from '../../app/open-sockets.ts'
import type { Upgrades } from '../../app/upgrades.ts'
import type { Config } from '../../config/schema/config.ts'
import { splitHostPort } from '../../config/schema/host-port.ts'
import type { RecentRequests } from '../../observability/recent-requests.ts'
import type { Log } from '../../services/services.ts'

export type ListenerName = 'public' | 'redirect'

/** Descriptors of listening sockets that this process has inherited. */
export type ListenerFds = Readonly<Partial<Record<ListenerName, number | undefined>>>

/** An open listener of this process, for one that inherits it. */
export interface ListenerFd {
  readonly name: ListenerName | 'ops'
  /** As config has it, also where its port is 0. */
  readonly listen: string
  readonly fd: number
}

/** The addresses that config has for the public, by listener. */
export function listenersOf({
  gateway: { server }
}: Config): Array<readonly [ListenerName, string]> {
  const { tls, listen: address } = server
  const redirect = tls?.redirect
  return [['public', address], ...(redirect === undefined ? [] : [['redirect', redirect] as const])]
}

interface Options {
  readonly config: Config
  readonly server: Server
  readonly upgrades: Upgrades
  readonly log: Log
  readonly recent: Pick<RecentRequests, 'add'>
  readonly shed: ShedLog
}

export function createListeners({ config, server, upgrades, log, recent, shed }: Options) {
  const { server: settings } = config.gateway
  const redirect = settings.tls?.redirect
  const redirectServer =
    redirect === undefined ? undefined : createHttpsRedirect(settings, { log, recent })
  const sockets = isTlsServer(server) ? openSockets(server) : new Set<Socket>()
  let { serverTls } = config
  const boundPeers = createPeerBound({
    max: settings.overload.connectionsPerAddress,
    trustedProxies: settings.trustedProxies,
    ipv6Prefix: config.limits.ipv6Prefix,
    onRefused: address => shed.count('connections', { address })
  })
  boundPeers(server)
  if (redirectServer !== undefined) boundPeers(redirectServer)

  return {
    /** @returns the address for the console, with the real port. @throws when it cannot listen */
    listen: async (fds: ListenerFds = {}): Promise<string> => {
      if (redirect !== undefined && redirectServer !== undefined) {
        await listen(redirectServer, splitHostPort(redirect), fds.redirect)
      }
      return await listen(server, splitHostPort(settings.listen), fds.public)
    },
    descriptors: (): ListenerFd[] =>
      listenersOf(config).map(([name, address]) => ({
        name,
        listen: address,
        fd: fdOf(name === 'public' ? server : redirectServer)
      })),
    /** Takes the certificate of a new config, if it is another one. */
    activate: (next: Config) => {
      if (next.serverTls === undefined || isDeepStrictEqual(next.serverTls, serverTls)) return
      setCertificate(server, next.serverTls)
      serverTls = next.serverTls
    },
    stop: async (graceMs: number, lingerMs: number): Promise<boolean> => {
      if (redirectServer !== undefined) void closeServer(redirectServer, lingerMs)
      const inTime = await stopServer({ server, sockets, upgrades, graceMs, lingerMs })
      redirectServer?.closeAllConnections()
      return inTime
    }
  }
}

/** Node has no public name for the descriptor of a server. */
export function fdOf(server: unknown): number {
  const { _handle: handle } = server as { readonly _handle?: { readonly fd: number } | null }
  return handle?.fd ?? -1
}

async function listen(
  server: Server,
  { host, port }: { host: string; port: number },
  fd?: number
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

interface Stop {
  readonly server: Server
  /** Cut after the time, beside the server's own connections. */
  readonly sockets: ReadonlySet<Socket>
  readonly upgrades: Upgrades
  /** Of requests that still run after `lingerMs`. */
  readonly graceMs: number
  /** Idle connections end after it. */
  readonly lingerMs: number
}

/** @returns whether all connections ended within the time; what is left then is cut */
async function stopServer({
  server,
  sockets,
  upgrades,
  graceMs,
  lingerMs
}: Stop): Promise<boolean> {
  const closed = closeServer(server, lingerMs)
  const limit = wait(lingerMs + graceMs, false, { ref: false })
  const inTime = await Promise.race([closed.then(() => true), limit])
  server.closeAllConnections()
  for (const socket of sockets) socket.destroy()
  upgrades.destroyAll()
  await closed
  return inTime
}

/** With `lingerMs`, requests that are on their way on idle connections are still answered. */
export async function closeServer(server: Server, lingerMs: number): Promise<void> {
  if (!server.listening) return
  const closed = Promise.withResolvers<void>()
  const close = () => server.close(() => closed.resolve())
  if (lingerMs === 0) {
    close()
    server.closeIdleConnections()
    return await closed.promise
  }
  server.prependListener('request', (_request, response) => {
    response.shouldKeepAlive = false
  })
  // Takes no more connections. `close` of node:http would end the idle ones too.
  TcpServer.prototype.close.call(server, () => closed.resolve())
  const timer = setTimeout(() => server.closeIdleConnections(), lingerMs)
  await closed.promise
  clearTimeout(timer)
}
