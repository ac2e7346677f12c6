/** One address of an upstream: its connections, and whether it works. */
import type { Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher, Pool } from 'undici'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { adopt } from '../observability/emitters.ts'
import type { AddressStatus } from '../observability/gateway-state.ts'
import { fixedHeadersOf } from './request-headers.ts'
import type { TlsFiles } from './tls-files.ts'

export interface AddressChange {
  /** `open`: too many requests failed in a row. `unhealthy`: its health checks fail. */
  readonly to: 'open' | 'closed' | 'unhealthy' | 'healthy'
  /** Of `open`. */
  readonly failure?: Failure
}

type OnChange = (address: string, change: AddressChange) => void

/** `connect`: there was no connection. `request`: a request failed by the back-end's doing. */
type Failure = 'connect' | 'request'

/** Errors that say nothing of an address: this machine had no sockets, or the pool was closed. */
const localCodes = new Set([
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
  'EADDRNOTAVAIL',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED',
  'UND_ERR_INVALID_ARG'
])

export function isLocalError(error: unknown): boolean {
  return localCodes.has(String((error as { code?: unknown } | null)?.code))
}

/**
 * After this time connections are made anew, so that a name which has moved is followed.
 * perf: undici's own `clientTtl` reads the clock for each connection: 4 % of a request.
 */
const connectionsMs = 60_000
/** More of the response to a health check is not read. */
const maxCheckBytes = 64 * 1024

export class Address {
  /** Scheme, host and port. */
  readonly origin: string
  state: AddressStatus['state'] = 'up'
  /** Requests that it has, WebSockets among them. */
  inFlight = 0
  /** Requests that it ever got; both numbers only rise. */
  #requests = 0
  /** Those of them that failed by the back-end's doing. */
  #failures = 0
  readonly #config: UpstreamConfig
  readonly #connect: buildConnector.connector
  readonly #onChange: OnChange
  /** The latest gets requests; the others have some that are running. */
  readonly #pools = new Set<Pool>()
  #pool: Pool
  #poolUntil = Date.now() + connectionsMs
  /** In a row. */
  #failed = 0
  /** Of an open one: the time of the next request. */
  #tryAt = 0
  /** The last change between `up` and the others, in milliseconds since the epoch. */
  #since = Date.now()

  constructor(url: string, config: UpstreamConfig, tls: TlsFiles, onChange: OnChange) {
    this.origin = new URL(url).origin
    this.#config = config
    this.#onChange = onChange
    this.#connect = buildConnector({
      timeout: config.connectTimeout,
      rejectUnauthorized: true,
      ...tls
    })
    this.#pool = this.#openPool()
  }

  use() {
    return {
      address: this.origin,
      state: this.state,
      inFlight: this.inFlight,
      since: this.#since,
      requests: this.#requests,
      failures: this.#failures
    }
  }

  /** Whether it gets requests; an open one gets one after each `openFor`. */
  get isUsable(): boolean {
    return this.state === 'up' || (this.state === 'open' && performance.now() >= this.#tryAt)
  }

  /** It gets a request. */
  begin(): void {
    this.inFlight++
    this.#requests++
    if (this.state === 'open') this.#tryAt = performance.now() + this.#config.breaker.openFor
  }

  /** The request is over. */
  end(): void {
    this.inFlight--
  }

  succeeded(): void {
    this.#failed = 0
    if (this.state === 'open') this.#become('up', { to: 'closed' })
  }

  /** A connection that could not be made is enough, since the others can do without. */
  failedBy(failure: Failure): void {
    const { failures, openFor } = this.#config.breaker
    this.#failures++
    this.#failed = failure === 'connect' ? failures : this.#failed + 1
    if (this.#failed < failures) return
    this.#tryAt = performance.now() + openFor
    if (this.state === 'up') this.#become('open', { to: 'open', failure })
  }

  /** Takes the result of its health checks. Without one it counts as healthy. */
  setHealthy(isHealthy: boolean): void {
    const wasHealthy = this.state !== 'unhealthy'
    if (wasHealthy && !isHealthy) this.#become('unhealthy', { to: 'unhealthy' })
    if (!wasHealthy && isHealthy) this.#become('up', { to: 'healthy' })
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const now = Date.now()
    if (now >= this.#poolUntil) {
      void this.#retire(this.#pool)
      this.#pool = this.#openPool()
      this.#poolUntil = now + connectionsMs
    }
    this.#pool.dispatch(options, handler)
  }

  /** A connection that is none of the pool's. */
  connect(): Promise<Socket> {
    const { hostname, host, protocol, port } = new URL(this.origin)
    const name = hostname.replace(/^\[|\]$/g, '')
    return new Promise((resolve, reject) => {
      this.#connect({ hostname: name, host, protocol, port }, (error, socket) =>
        error === null ? resolve(socket) : reject(error)
      )
    })
  }

  /**
   * Asks once, over a connection of its own: those of requests may all be busy.
   * @returns the status of the response
   * @throws where there is none in time
   */
  async check(path: string, timeoutMs: number): Promise<number> {
    const client = adopt(new Client(this.origin, { connect: this.#connect }))
    // Requests have them already.
    const headers = fixedHeadersOf(this.#config) ?? null
    try {
      const signal = AbortSignal.timeout(timeoutMs)
      const { statusCode, body } = await client.request({ method: 'GET', path, headers, signal })
      await adopt(body).dump({ limit: maxCheckBytes, signal })
      return statusCode
    } finally {
      await client.destroy()
    }
  }

  /** Lets what is running finish. */
  async retire(): Promise<void> {
    await Promise.all(Array.from(this.#pools, pool => this.#retire(pool)))
  }

  /** Ends what is running. */
  async close(): Promise<void> {
    await Promise.all(Array.from(this.#pools, pool => pool.destroy()))
  }

  #openPool(): Pool {
    const { keepAlive } = this.#config
    const pool = adopt(
      new Pool(this.origin, {
        // `Slots` bound the requests.
        connections: null,
        pipelining: 1,
        // A `Keep-Alive` hint of the back-end counts instead, less undici's threshold of 2 s.
        keepAliveTimeout: Math.max(1, keepAlive),
        keepAliveMaxTimeout: Math.max(60_000, keepAlive),
        // `Receiver` has the clocks: undici's know neither a route's bounds nor what is a stream.
        headersTimeout: 0,
        bodyTimeout: 0,
        maxHeaderSize: 16 * 1024,
        allowH2: false,
        connect: this.#connect
      })
    )
    this.#pools.add(pool)
    return pool
  }

  async #retire(pool: Pool): Promise<void> {
    // It fails for one that was ended meanwhile.
    await pool.close().catch(() => {})
    this.#pools.delete(pool)
  }

  #become(state: AddressStatus['state'], change: AddressChange): void {
    if (state === 'up' || this.state === 'up') this.#since = Date.now()
    this.state = state
    this.#onChange(this.origin, change)
  }
}
