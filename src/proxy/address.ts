/** One address of an upstream: its connections, and whether it works. */
import type { Socket } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { buildConnector, type Dispatcher, Pool } from 'undici'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { adopt } from '../observability/emitters.ts'
import { fixedHeadersOf } from './request-headers.ts'

/** `open`: too many requests failed in a row. `unhealthy`: its health checks fail. */
export type AddressChange = 'open' | 'closed' | 'unhealthy' | 'healthy'

/** `connect`: there was no connection. `request`: a request failed by the back-end's doing. */
export type Failure = 'connect' | 'request'

export type OnAddress = (address: string, change: AddressChange, failure?: Failure) => void

/** A name that has moved is followed. perf: undici's `clientTtl` costs 4 % of a request. */
const connectionsMs = 60_000

const check = {
  timeoutMs: 2000,
  /** More of the response is not read. */
  maxBytes: 64 * 1024,
  /** One check may get lost; an address that answers again is of use at once. */
  failures: 2
}

/** When an address is left out: after so many failures in a row, for so long. */
const breaker = { failures: 5, openForMs: 10_000 }

/** Within it a request waits for the only address that has just gone. */
const restartMs = 1000

export class Address {
  readonly origin: string
  state: 'up' | 'open' | 'unhealthy' = 'up'
  /** Requests that it has, WebSockets among them. */
  inFlight = 0
  /** Requests that it ever got; both numbers only rise. */
  #requests = 0
  /** Those of them that failed by the back-end's doing. */
  #failures = 0
  readonly #config: UpstreamConfig
  readonly #connect: buildConnector.connector
  readonly #onChange: OnAddress
  #pool: Pool
  #poolUntil = Date.now() + connectionsMs
  #failed = 0
  #hasWorked = false
  /** The first connection that could not be made since it worked. */
  #awayAt: number | undefined
  /** Of an open one: the time of the next request. */
  #tryAt = 0
  /** The last change between `up` and the others, in milliseconds since the epoch. */
  #since = Date.now()
  readonly #checking = new AbortController()

  constructor(url: string, config: UpstreamConfig, onChange: OnAddress) {
    this.origin = new URL(url).origin
    this.#config = config
    this.#onChange = onChange
    this.#connect = buildConnector({
      timeout: config.connectTimeout,
      rejectUnauthorized: true,
      ca: config.tls?.ca,
      cert: config.tls?.certificate,
      key: config.tls?.key,
      servername: config.tls?.serverName
    })
    this.#pool = this.#openPool()
    if (config.health !== undefined) void this.#checkHealth(config.health)
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

  /** Whether it gets requests; an open one gets one after each `openForMs`. */
  get isUsable(): boolean {
    return this.state === 'up' || (this.state === 'open' && performance.now() >= this.#tryAt)
  }

  /** Whether it worked, and is away for so short a time that it may be restarting. */
  get mayReturn(): boolean {
    return this.#hasWorked && performance.now() - (this.#awayAt ?? -Infinity) < restartMs
  }

  begin(): void {
    this.inFlight++
    this.#requests++
    if (this.state === 'open') this.#tryAt = performance.now() + breaker.openForMs
  }

  end(): void {
    this.inFlight--
  }

  succeeded(): void {
    this.#failed = 0
    this.#hasWorked = true
    this.#awayAt = undefined
    if (this.state === 'open') this.#become('up', 'closed')
  }

  /** A connection that could not be made is enough, since the others can do without. */
  failedBy(failure: Failure): void {
    this.#failures++
    if (failure === 'connect') this.#awayAt ??= performance.now()
    this.#failed = failure === 'connect' ? breaker.failures : this.#failed + 1
    if (this.#failed < breaker.failures) return
    this.#tryAt = performance.now() + breaker.openForMs
    if (this.state === 'up') this.#become('open', 'open', failure)
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const now = Date.now()
    if (now >= this.#poolUntil) {
      void this.#pool.close().catch(() => {})
      this.#pool = this.#openPool()
      this.#poolUntil = now + connectionsMs
    }
    this.#pool.dispatch(options, handler)
  }

  /** A connection that is none of the pool's: a request until it is closed. */
  connect(): Promise<Socket> {
    const { host, protocol, port, hostname: written } = new URL(this.origin)
    const hostname = written.replace(/^\[|\]$/g, '')
    this.begin()
    return new Promise((resolve, reject) => {
      this.#connect({ hostname, host, protocol, port }, (error, socket) => {
        if (error !== null) {
          this.end()
          return reject(error)
        }
        adopt(socket).once('close', () => this.end())
        this.succeeded()
        resolve(socket)
      })
    })
  }

  /** Lets what is running finish. */
  async close(): Promise<void> {
    this.#checking.abort()
    await this.#pool.close().catch(() => {})
  }

  /** Again and again, whether or not it gets requests. The next check begins a while after one. */
  async #checkHealth({ path, interval }: NonNullable<UpstreamConfig['health']>): Promise<void> {
    const { signal } = this.#checking
    let failures = 0
    while (!signal.aborted) {
      const passes = await this.#check(path).catch(() => false)
      if (signal.aborted) return
      failures = passes ? 0 : failures + 1
      const isUnhealthy = this.state === 'unhealthy'
      if (passes && isUnhealthy) this.#become('up', 'healthy')
      if (failures >= check.failures && !isUnhealthy) this.#become('unhealthy', 'unhealthy')
      // A tenth more or less, so that checks of many replicas do not meet.
      const pauseMs = interval * (0.9 + Math.random() / 5)
      await wait(pauseMs, undefined, { ref: false, signal }).catch(() => {})
    }
  }

  async #check(path: string): Promise<boolean> {
    // Requests have them already.
    const headers = fixedHeadersOf(this.#config) ?? null
    const signal = AbortSignal.timeout(check.timeoutMs)
    const response = await this.#pool.request({ method: 'GET', path, headers, signal })
    await adopt(response.body).dump({ limit: check.maxBytes, signal })
    return response.statusCode >= 200 && response.statusCode < 300
  }

  #openPool(): Pool {
    return adopt(
      new Pool(this.origin, {
        // `Slots` bound the requests.
        connections: null,
        pipelining: 1,
        // A request that meets the back-end's closing fails, and gunicorn closes after 2 s. Its
        // `Keep-Alive` hint counts instead, less undici's threshold of 2 s.
        keepAliveTimeout: 1500,
        keepAliveMaxTimeout: 60_000,
        // `Receiver` has the clocks: undici's know neither a route's bounds nor what is a stream.
        headersTimeout: 0,
        bodyTimeout: 0,
        maxHeaderSize: 16 * 1024,
        allowH2: false,
        connect: this.#connect
      })
    )
  }

  #become(state: Address['state'], change: AddressChange, failure?: Failure): void {
    if (state === 'up' || this.state === 'up') this.#since = Date.now()
    this.state = state
    this.#onChange(this.origin, change, failure)
  }
}

/** The fewest requests in flight of those that work, by turns; of all where none works. */
export function createPick(addresses: readonly Address[]) {
  let turn = 0
  /** @returns the best of those that were not tried, if there are any */
  return (tried?: readonly Address[]): Address | undefined => {
    let best: Address | undefined
    turn++
    for (let n = 0; n < addresses.length; n++) {
      const address = addresses[(turn + n) % addresses.length] as Address
      if (tried?.includes(address) === true) continue
      const isBetter =
        address.isUsable === best?.isUsable ? address.inFlight < best.inFlight : address.isUsable
      if (best === undefined || isBetter) best = address
    }
    return best
  }
}
