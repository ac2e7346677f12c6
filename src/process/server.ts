/** The public server. A generation is one built app: another replaces it, then it drains. */
import { once } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { buildApp } from '../app/app.ts'
import { BoundStreams } from '../app/bound-streams.ts'
import { createConnections } from '../app/connections.ts'
import { redirectAll } from '../app/hooks/request-policy.ts'
import { createListener, type Handler, isTlsServer, setCertificate } from '../app/listener.ts'
import { createShedLog, type ShedLog } from '../app/hooks/metrics.ts'
import type { Config } from '../config/schema/config.ts'
import { splitHostPort } from '../config/schema/host-port.ts'
import { signOutAtSource } from '../login/credential-source.ts'
import { createVouching } from '../ops/session.ts'
import { createServices, type Log, type Services } from '../services/services.ts'
import type { Session } from '../session/types.ts'

export type PublicServer = ReturnType<typeof createPublicServer>

/** Descriptors of sockets that listen already, by what they are for. */
export interface HeldSockets {
  readonly console?: number
  readonly redirect?: number
  readonly ops?: number
}

/** Of a stop's time: within it streams are told to end, in the rest they may do so. */
const drainShare = 0.8
/** A connection that was just accepted brings its request within this time. */
const beginMs = 50

export type Generation = Awaited<ReturnType<typeof createGeneration>>

/** How long streams of an earlier generation go on, and the time over which their ends are spread. */
const [streamsMs, spreadMs] = [600_000, 30_000]

interface Outliving {
  readonly services: Services
  readonly boundStreams: BoundStreams
  readonly shed: ShedLog
}

/** The generation that takes requests, and those before it that still answer some. */
class Generations {
  readonly #log: Log
  readonly #former = new Set<Generation>()
  /** Set before anything listens. */
  current!: Generation

  constructor(log: Log) {
    this.#log = log
  }

  /** From now on this generation takes the requests; the one before ends with its last. */
  activate(generation: Generation): void {
    const previous: Generation | undefined = this.current
    this.current = generation
    if (previous === undefined) return
    this.#former.add(previous)
    void previous
      .retire()
      .catch((err: unknown) => this.#log.error({ err }, 'an old generation could not be closed'))
      .finally(() => this.#former.delete(previous))
  }

  draining() {
    return Array.from(this.#former, ({ number, requests }) => ({
      generation: number,
      requests: requests()
    }))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#former, this.current].map(generation => generation.end()))
  }
}

export function createPublicServer(config: Config, log: Log) {
  tuneV8()
  const services = createServices(config, log)
  const boundStreams = new BoundStreams({
    ...services,
    onError: err => log.error({ err }, 'a stream could not be held against its session')
  })
  const shed = createShedLog(services.metrics, log)
  const outliving = { services, boundStreams, shed }
  const generations = new Generations(log)
  const listeners = createListeners(config, { ...outliving, generations })
  return {
    services,
    generations,
    create: (number: number, next: Config): Promise<Generation> =>
      createGeneration(number, next, outliving),
    activate: (generation: Generation): void => {
      const { tls } = generation.config.gateway.server
      if (tls !== undefined) setCertificate(listeners.server, tls)
      generations.activate(generation)
      boundStreams.activate(generation.config)
      services.fileUsers.activate(generation.config)
      services.sessions.forget()
    },
    listen: listeners.listen,
    leave: listeners.leave,
    /** @returns whether all requests finished in time; what is left then is cut */
    stop: async (graceMs: number): Promise<boolean> => {
      boundStreams.drain(graceMs * drainShare)
      return await listeners.stop(graceMs)
    },
    close: async (): Promise<void> => {
      boundStreams.close()
      await services.close()
    }
  }
}

/** @throws when the config cannot be built; everything opened before is closed again */
async function createGeneration(
  number: number,
  config: Config,
  { services, boundStreams, shed }: Outliving
) {
  const idle = Promise.withResolvers<void>()
  let closed: Promise<void> | undefined
  const running = createActiveRequests<{ readonly destroy: () => unknown }>(() => {
    if (closed !== undefined) idle.resolve()
  })
  const lease = services.upstreams.lease()
  const streams = boundStreams.scope()
  const app = await buildApp(config, {
    ...services,
    shed,
    upstream: lease.upstream,
    running: running.enter,
    bindStream: streams.add
  }).catch(async (error: unknown) => {
    await lease.release()
    throw error
  })

  async function close(): Promise<void> {
    const limit = setTimeout(() => streams.drain(spreadMs), streamsMs - spreadMs).unref()
    if (running.size() === 0) idle.resolve()
    await idle.promise
    clearTimeout(limit)
    await app.close()
    await lease.release()
  }

  return {
    number,
    config,
    handle: (request: IncomingMessage, response: ServerResponse) => app.routing(request, response),
    requests: running.size,
    vouching: createVouching(app.gateway),
    signOut: (ended: readonly Session[]) => signOutAtSource(app.gateway, ended, services),
    /** Closes when the last request has ended; streams are told to end after ten minutes. */
    retire: () => (closed ??= close()),
    end: async (): Promise<void> => {
      streams.drain(0)
      for (const member of running.list()) member.destroy()
      await (closed ??= close())
    }
  }
}

/**
 * In-flight requests as a swap-remove array. A Set would do the same, but keeps deleted entries
 * alive: when it is full it moves to another table, and the old tables, each of which points to
 * the next, hold on to all their members until the next full garbage collection.
 * perf: signed-in −36 % (−31 to −43; `npm run bench -- --against`, by turns); without it: a Set.
 */
function createActiveRequests<T>(onEmpty = () => {}) {
  const places: Array<{ readonly member: T; at: number }> = []
  return {
    /** @returns a function to call once when the request has ended */
    enter: (member: T) => {
      const place = { member, at: places.length }
      places.push(place)
      return (): void => {
        const last = places.pop()
        if (last !== undefined && last !== place) {
          last.at = place.at
          places[place.at] = last
        }
        if (places.length === 0) onEmpty()
      }
    },
    size: () => places.length,
    list: () => places.map(({ member }) => member)
  }
}

function createListeners(
  config: Config,
  { generations, services, shed }: Outliving & Pick<PublicServer, 'generations'>
) {
  const { gateway } = config
  const { server: settings } = gateway
  const { maxConnections, trustedProxies } = settings
  const connections = createConnections(maxConnections, trustedProxies, address =>
    shed('connections', { address })
  )
  const handle: Handler = (request, response) => generations.current.handle(request, response)
  const server = createListener({ gateway, tls: settings.tls }, handle, services)
  const redirects = [settings.tls?.redirect ?? []].flat().map(address => {
    return { address, server: createListener({ gateway }, handle, services) }
  })
  const all = [...redirects.map(each => each.server), server]
  let lingerMs = 0
  for (const each of all) connections.add(each)
  for (const each of redirects) redirectAll(each.server)

  return {
    server,
    /** @returns the address for the console, with the real port. @throws when it cannot listen */
    listen: async (held: HeldSockets): Promise<string> => {
      for (const { address, server: each } of redirects) {
        await listen(each, splitHostPort(address), held.redirect)
      }
      return await listen(server, splitHostPort(settings.listen), held.console)
    },
    /** From now on each response is the last one of its connection. */
    leave: (): void => {
      server.prependListener('request', (_request, response: ServerResponse) => {
        response.shouldKeepAlive = false
      })
      lingerMs = beginMs
    },
    stop: async (graceMs: number): Promise<boolean> => {
      const closed = Promise.all(all.map(each => closeServer(each, lingerMs)))
      const limit = wait(graceMs, false, { ref: false })
      const inTime = await Promise.race([closed.then(() => true), limit])
      connections.destroyAll()
      for (const each of all) each.closeAllConnections()
      await closed
      return inTime
    }
  }
}

export async function listen(server: Server, at: ReturnType<typeof splitHostPort>, fd?: number) {
  server.listen(fd === undefined ? at : { fd })
  await once(server, 'listening')
  return urlOf(at.host, server)
}

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

/** The sockets of sd_listen_fds(3), by name. Programs that this one starts must not take them. */
export function takeListenFds(environment = process.env, pid = process.pid): HeldSockets {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES = '' } = environment
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete environment[name]
  if (Number(LISTEN_PID) !== pid) return {}
  const names = LISTEN_FDNAMES.split(':')
  return Object.fromEntries(
    Array.from({ length: Number(LISTEN_FDS) || 0 }, (_, index) => {
      const name = names[index] ?? ''
      return [name === 'ops' || name === 'redirect' ? name : 'console', 3 + index]
    })
  )
}

/**
 * V8's defaults suit programs that keep their objects; most of a proxy's end with their request.
 * perf: 30 % (25 to 39) off the CPU time of 100 MB down, 33 % (27 to 37) up (bench: transfer).
 */
function tuneV8(): void {
  // Objects of requests survive a few collections while the heap is small: later ones would be
  // allocated as old, and stay until the next full collection.
  setFlagsFromString('--no-allocation-site-pretenuring')
  // Few objects are alive, so one thread is faster than several that are woken for it.
  setFlagsFromString('--no-parallel-scavenge')
  // Old objects may grow by so many per cent before a full collection; four times by default.
  setFlagsFromString('--heap-growing-percent=30')
  // A young collection, which frees buffers of bodies, comes after 8 MB of them, not after 128.
  // Node 26 has no such flag.
  if (process.versions.v8.startsWith('13.')) {
    setFlagsFromString('--scavenger-max-new-space-capacity-mb=2')
  }
}
