/** One address of an upstream: its connections, its requests in flight, and its breaker. */
import type { LookupFunction } from 'node:net'
import { buildConnector, Client, type Dispatcher, Pool } from 'undici'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { adopt } from '../observability/emitters.ts'
import { AddressState, type Failure, type Transition } from './address-state.ts'
import { type FixedHeaders, fixedHeadersOf } from './headers.ts'
import type { TlsFiles } from './tls-files.ts'

/** The target of connections, with the name that they use. */
export interface Endpoint {
  /** Scheme, name and port as config has them: `Host` and the server name of TLS. */
  readonly origin: string
  readonly weight: number
  /** The IPs of the name, one of each family at most; without them each connection looks it up. */
  readonly ips?: readonly string[]
  /** In the place of the origin's, where DNS says so. */
  readonly port?: number
}

/** Errors of connections that never were: nothing was written, so any request may go elsewhere. */
const connectErrors = new WeakSet<object>()

export function isConnectError(error: unknown): boolean {
  return typeof error === 'object' && error !== null && connectErrors.has(error)
}

/** This machine has nothing left to connect with, or the pool was closed. */
const localCodes = new Set([
  'EMFILE',
  'ENFILE',
  'ENOBUFS',
  'ENOMEM',
  'EADDRNOTAVAIL',
  'UND_ERR_CLOSED',
  'UND_ERR_DESTROYED'
])

/** More of the response to a check is not read. */
const maxCheckBytes = 64 * 1024

/** When this machine had nothing to try an address with, it is tried again so much later. */
const localRetryMs = 1000

/** Whether it says nothing of the address. */
export function isLocalError(error: unknown): boolean {
  return localCodes.has(String((error as { code?: unknown } | null)?.code))
}

export class Address {
  readonly endpoint: Endpoint
  /** The same for the same endpoint. */
  readonly key: string
  /** For logs and operators. */
  readonly label: string
  readonly state: AddressState
  /** Requests that have it. */
  inFlight = 0
  /** Requests that it ever got; both numbers only rise. */
  requests = 0
  /** Those of them that failed by the back-end's doing. */
  failures = 0
  /** Whether no other address could answer in its place. */
  isOnly = false
  readonly #pool: Pool
  readonly #connect: buildConnector.connector
  /** Of checks; requests have them already. */
  readonly #fixedHeaders: FixedHeaders | null
  #probeTimer: NodeJS.Timeout | undefined
  /** Whether it gets no more requests. */
  #isOver = false

  constructor(
    endpoint: Endpoint,
    config: UpstreamConfig,
    tls: TlsFiles,
    onTransition: (address: Address, transition: Transition) => void
  ) {
    this.endpoint = endpoint
    this.key = keyOf(endpoint)
    this.label = labelOf(endpoint)
    this.state = new AddressState(config.breaker, transition => {
      if (transition.failure === 'connect') this.#probeAfter(transition.openMs ?? 0)
      onTransition(this, transition)
    })
    this.#connect = connectorOf(endpoint, config, tls)
    this.#fixedHeaders = fixedHeadersOf(config) ?? null
    this.#pool = adopt(
      new Pool(endpoint.origin, {
        connections: config.connections,
        pipelining: 1,
        // A `Keep-Alive` hint of the back-end counts instead, less undici's threshold of 2 s.
        keepAliveTimeout: Math.max(1, config.keepAlive),
        keepAliveMaxTimeout: Math.max(60_000, config.keepAlive),
        // `Attempt` has the clocks: undici's know neither a route's bounds nor what is a stream.
        headersTimeout: 0,
        bodyTimeout: 0,
        maxHeaderSize: 16 * 1024,
        allowH2: false,
        connect: this.#connect
      })
    )
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#pool.dispatch(options, handler)
  }

  succeeded(): void {
    this.state.succeeded(performance.now())
  }

  failed(failure: Failure): void {
    this.state.failed(failure, performance.now(), this.isOnly)
  }

  /** A connection that is none of the pool's. */
  connect(done: buildConnector.Callback): void {
    const { hostname, host, protocol, port } = new URL(this.endpoint.origin)
    const options = { hostname: hostname.replace(/^\[|\]$/g, ''), host, protocol, port }
    this.#connect(options, done)
  }

  /**
   * Asks once, over a connection of its own: those of requests may all be busy.
   * @returns the status of the response
   * @throws where there is none in time
   */
  async check(path: string, timeoutMs: number): Promise<number> {
    const client = adopt(new Client(this.endpoint.origin, { connect: this.#connect }))
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
    this.#endProbes()
    await this.#pool.close()
  }

  /** Ends what is running. */
  async close(): Promise<void> {
    this.#endProbes()
    await this.#pool.destroy()
  }

  #endProbes(): void {
    this.#isOver = true
    clearTimeout(this.#probeTimer)
  }

  /** One that could not be reached is tried by a connection of its own, not by a request. */
  #probeAfter(afterMs: number): void {
    clearTimeout(this.#probeTimer)
    // What was connecting then may still fail.
    if (this.#isOver) return
    this.#probeTimer = setTimeout(() => this.#probe(), Math.ceil(afterMs) + 1).unref()
  }

  #probe(): void {
    if (!this.state.isDue(performance.now())) return
    this.state.beginTrial(this)
    this.connect((error, socket) => {
      socket?.destroy()
      if (error === null) return this.succeeded()
      if (!isLocalError(error)) return this.failed('connect')
      this.state.abandonTrial(this)
      this.#probeAfter(localRetryMs)
    })
  }
}

/** Marks the errors of connections that failed, and puts in what DNS said. */
function connectorOf(
  { ips, port }: Endpoint,
  config: UpstreamConfig,
  tls: TlsFiles
): buildConnector.connector {
  const connect = buildConnector({
    timeout: config.connectTimeout,
    rejectUnauthorized: true,
    ...tls,
    ...(ips !== undefined && { lookup: lookupOf(ips) })
  })
  return (options, callback) =>
    connect(port === undefined ? options : { ...options, port: String(port) }, (...result) => {
      const [error] = result
      if (error !== null) connectErrors.add(error)
      callback(...result)
    })
}

/** Gives what is known; of two families the first that connects is used (RFC 8305, by Node). */
function lookupOf(ips: readonly string[]): LookupFunction {
  const addresses = ips.map(address => ({ address, family: address.includes(':') ? 6 : 4 }))
  return (_hostname, { all }, done) => {
    if (all === true) return process.nextTick(done, null, addresses)
    const [first] = addresses
    process.nextTick(done, null, first?.address ?? '', first?.family)
  }
}

export function keyOf(endpoint: Endpoint): string {
  return JSON.stringify(endpoint)
}

function labelOf({ origin, ips, port }: Endpoint): string {
  if (ips === undefined) return origin
  const hosts = ips.map(ip => (ip.includes(':') ? `[${ip}]` : ip)).join(' or ')
  return `${origin} at ${hosts}${port === undefined ? '' : `, port ${port}`}`
}
