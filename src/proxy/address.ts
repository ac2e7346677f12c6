/** One address of an upstream: its connections, and whether it works. */
import type { Socket } from 'node:net'
import { buildConnector, Client, type Dispatcher, Pool } from 'undici'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { adopt } from '../observability/emitters.ts'
import { type FixedHeaders, fixedHeadersOf } from './request-headers.ts'
import type { TlsFiles } from './tls-files.ts'

/** `open`: too many requests failed in a row. `unhealthy`: its health checks fail. */
export type AddressState = 'up' | 'open' | 'unhealthy'

export interface AddressChange {
  readonly to: 'open' | 'closed' | 'unhealthy' | 'healthy'
  /** Of `open`. */
  readonly failure?: Failure
}

/** `connect`: there was no connection. `request`: a request failed by the back-end's doing. */
export type Failure = 'connect' | 'request'

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
  /** Requests that it has, WebSockets among them. */
  inFlight = 0
  /** Requests that it ever got; both numbers only rise. */
  requests = 0
  /** Those of them that failed by the back-end's doing. */
  failures = 0
  readonly #openPool: () => Pool
  #pool: Pool
  #poolUntil = Date.now() + connectionsMs
  /** Earlier ones, with requests that are running. */
  readonly #retired = new Set<Pool>()
  readonly #connect: buildConnector.connector
  /** Of health checks; requests have them already. */
  readonly #fixedHeaders: FixedHeaders | null
  readonly #breaker: UpstreamConfig['breaker']
  readonly #onChange: (change: AddressChange) => void
  #isHealthy = true
  #isOpen = false
  /** In a row. */
  #failed = 0
  /** Of an open one: the time of the next request. */
  #tryAt = 0
  #since = Date.now()

  constructor(
    url: string,
    config: UpstreamConfig,
    tls: TlsFiles,
    onChange: (address: string, change: AddressChange) => void
  ) {
    const { origin } = new URL(url)
    this.origin = origin
    this.#onChange = change => onChange(origin, change)
    this.#breaker = config.breaker
    this.#fixedHeaders = fixedHeadersOf(config) ?? null
    this.#connect = buildConnector({
      timeout: config.connectTimeout,
      rejectUnauthorized: true,
      ...tls
    })
    this.#openPool = () =>
      adopt(
        new Pool(origin, {
          // `Slots` bound the requests.
          connections: null,
          pipelining: 1,
          // A `Keep-Alive` hint of the back-end counts instead, less undici's threshold of 2 s.
          keepAliveTimeout: Math.max(1, config.keepAlive),
          keepAliveMaxTimeout: Math.max(60_000, config.keepAlive),
          // `Receiver` has the clocks: undici's know neither a route's bounds nor what is a stream.
          headersTimeout: 0,
          bodyTimeout: 0,
          maxHeaderSize: 16 * 1024,
          allowH2: false,
          connect: this.#connect
        })
      )
    this.#pool = this.#openPool()
  }

  get state(): AddressState {
    if (!this.#isHealthy) return 'unhealthy'
    return this.#isOpen ? 'open' : 'up'
  }

  /** The last change between `up` and the others, in milliseconds since the epoch. */
  get since(): number {
    return this.#since
  }

  /** Whether it gets requests; an open one gets one after each `openFor`. */
  get isUsable(): boolean {
    return this.#isHealthy && (!this.#isOpen || performance.now() >= this.#tryAt)
  }

  /** It gets a request. */
  begin(): void {
    this.inFlight++
    this.requests++
    if (this.#isOpen) this.#tryAt = performance.now() + this.#breaker.openFor
  }

  /** The request is over. */
  end(): void {
    this.inFlight--
  }

  succeeded(): void {
    this.#failed = 0
    if (this.#isOpen) this.#change({ to: 'closed' }, () => (this.#isOpen = false))
  }

  /** A connection that could not be made is enough, since the others can do without. */
  failedBy(failure: Failure): void {
    this.failures++
    this.#failed = failure === 'connect' ? this.#breaker.failures : this.#failed + 1
    if (this.#failed < this.#breaker.failures) return
    this.#tryAt = performance.now() + this.#breaker.openFor
    if (!this.#isOpen) this.#change({ to: 'open', failure }, () => (this.#isOpen = true))
  }

  /** Takes the result of its health checks. Without one it counts as healthy. */
  setHealthy(isHealthy: boolean): void {
    if (this.#isHealthy === isHealthy) return
    const to = isHealthy ? 'healthy' : 'unhealthy'
    this.#change({ to }, () => (this.#isHealthy = isHealthy))
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
    const headers = this.#fixedHeaders
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
    await Promise.all([this.#pool, ...this.#retired].map(pool => this.#retire(pool)))
  }

  /** Ends what is running. */
  async close(): Promise<void> {
    await Promise.all([this.#pool, ...this.#retired].map(pool => pool.destroy()))
  }

  async #retire(pool: Pool): Promise<void> {
    this.#retired.add(pool)
    // It fails for one that was ended meanwhile.
    await pool.close().catch(() => {})
    this.#retired.delete(pool)
  }

  #change(change: AddressChange, set: () => void): void {
    const wasUp = this.state === 'up'
    set()
    if (wasUp !== (this.state === 'up')) this.#since = Date.now()
    this.#onChange(change)
  }
}
