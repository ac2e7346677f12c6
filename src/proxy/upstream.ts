/**
 * The only sockets to back-ends: pools, time-outs, one retry of safe requests, and our codes for
 * failures.
 */
import { Readable } from 'node:stream'
import { Pool, type Dispatcher } from 'undici'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import { adopt } from '../observability/emitters.ts'
import {
  abort,
  Attempt,
  type Exchange,
  gone,
  type UpstreamResponse,
  type Watcher
} from './response.ts'
import { upstreamError } from './failures.ts'
import { ConnectionQueue } from './queue.ts'

/** A request of the gateway's own. */
export interface FetchOptions {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | string[]>
  readonly body?: string
  /** To the first byte. */
  readonly timeoutMs: number
  /** To the last byte; without it only a body that stalls ends. */
  readonly totalMs?: number
  readonly maxBytes: number
  /** The code for a larger response; `upstream.invalid` without it. */
  readonly tooLarge?: ErrorCode
  /** Ends it where the response is of no use any more. */
  readonly signal?: AbortSignal
}

export interface WholeResponse {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: Buffer
}

export type UpstreamPool = ReturnType<typeof createUpstream>
/** What routes and sign-in need of a back-end. */
export type Upstream = Pick<UpstreamPool, 'config' | 'origin' | 'base' | 'dispatch' | 'fetchWhole'>

/** A retry costs 1, a request earns 0.1: at most 10 % more load on a back-end in trouble. */
const retryBudget = 10

export interface UpstreamRequest {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | string[]>
  readonly body?: string | Buffer | Readable | null
}

type Done = (error: GatewayError | null, response?: UpstreamResponse) => void

/** What all calls of one upstream share. */
interface Connections {
  readonly pool: Pool
  readonly queue: ConnectionQueue
  /** How long a client may stand still while it reads a response. */
  readonly stallMs: number
  retryBudget: number
}

/** One request: its attempts, and the one response that it gets. */
class Call implements Watcher {
  readonly #connections: Connections
  readonly #options: Dispatcher.DispatchOptions
  readonly #exchange: Exchange
  readonly #done: Done
  readonly #isUpload: boolean
  #retriesLeft: number
  #isSettled = false

  constructor(
    connections: Connections,
    { method, path, headers, body = null }: UpstreamRequest,
    exchange: Exchange,
    done: Done
  ) {
    this.#connections = connections
    // `reset: false`: undici would close the connection after each HEAD.
    this.#options = { method, path, headers, body, reset: false }
    this.#exchange = exchange
    const isSafe = (method === 'GET' || method === 'HEAD') && body === null
    this.#retriesLeft = isSafe ? 1 : 0
    this.#isUpload = body instanceof Readable
    this.#done = done
  }

  /** Starts, or waits for a connection. */
  begin(): void {
    const { queue } = this.#connections
    if (queue.tryTake(this.#isUpload)) return this.start()
    const { body } = this.#options
    try {
      const leave = queue.wait({
        bytes: typeof body === 'string' || Buffer.isBuffer(body) ? body.length : 0,
        isUpload: this.#isUpload,
        start: () => {
          // The wait for a connection is not the upstream's time.
          this.#exchange.startedAt = performance.now()
          this.start()
        },
        refuse: this.#done
      })
      this.#exchange.attempt = {
        fail: error => {
          leave()
          this.#done(upstreamError(error))
        }
      }
    } catch (error) {
      this.#done(upstreamError(error))
    }
  }

  start(): void {
    const attempt = new Attempt(this.#exchange, this.#connections.stallMs, this)
    try {
      this.#connections.pool.dispatch(this.#options, attempt)
    } catch (error) {
      attempt.fail(error, true)
    }
  }

  onResponse(response: UpstreamResponse): void {
    this.#done(null, response)
  }

  onFailed(error: unknown, isFree: boolean): void {
    const failure = upstreamError(error)
    const isBroken = failure.code === 'upstream.reset' || failure.code === 'upstream.refused'
    const connections = this.#connections
    const mayRetry = this.#retriesLeft > 0 && connections.retryBudget >= 1 && !this.#exchange.isGone
    if (isBroken && mayRetry && isFree) {
      connections.retryBudget -= 1
      this.#retriesLeft--
      return this.start()
    }
    if (isFree) this.onSettled()
    this.#done(failure)
  }

  onSettled(): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#connections.queue.release(this.#isUpload)
  }
}

/**
 * One back-end. It outlives the routes that use it; its creator closes it.
 * @param authority the PEM text of `config.ca`
 */
export function createUpstream(config: UpstreamConfig, authority?: string) {
  const { origin, pathname } = new URL(config.url)
  const base = pathname.replace(/\/$/, '')
  const pool = createPool(origin, config, authority)
  const queue = new ConnectionQueue(config)
  const connections: Connections = { pool, queue, stallMs: config.idleTimeout, retryBudget }

  /**
   * Sends a request and gives one response to `done`: an error of ours, or the response as soon as
   * it may go on. A safe request whose connection broke before a response is sent once more;
   * nothing else ever is.
   */
  function dispatch(request: UpstreamRequest, exchange: Exchange, done: Done): void {
    if (exchange.isGone) return done(gone())
    connections.retryBudget = Math.min(retryBudget, connections.retryBudget + 0.1)
    new Call(connections, request, exchange, done).begin()
  }

  return {
    /** Scheme, host and port. */
    origin,
    /** What stands before every upstream path, without a slash at its end. */
    base,
    config,
    dispatch,
    /**
     * A request of the gateway's own, its response collected.
     * @throws GatewayError `upstream.*`, or `overloaded`
     */
    fetchWhole: (options: FetchOptions): Promise<WholeResponse> =>
      fetchWhole(dispatch, { ...options, path: base + options.path }),
    /** Requests that have a connection. */
    inFlight: () => queue.running,
    /** Requests that wait for one. */
    waiting: () => queue.waiting,
    /** Ends what is running. */
    close: async () => {
      queue.close(new GatewayError('gateway.stopping'))
      await pool.destroy()
    },
    /** Lets what is running finish. */
    retire: async () => {
      await pool.close()
    }
  }
}

function createPool(origin: string, config: UpstreamConfig, authority: string | undefined): Pool {
  return adopt(
    new Pool(origin, {
      connections: config.connections,
      pipelining: 1,
      keepAliveTimeout: 4000,
      keepAliveMaxTimeout: 60_000,
      // `Attempt` has a clock for the first byte: undici's is only exact to a second.
      headersTimeout: 0,
      bodyTimeout: config.idleTimeout,
      maxHeaderSize: 16 * 1024,
      allowH2: false,
      connect: {
        timeout: config.connectTimeout,
        rejectUnauthorized: true,
        ...(authority !== undefined && { ca: authority })
      }
    })
  )
}

async function fetchWhole(
  dispatch: (request: UpstreamRequest, exchange: Exchange, done: Done) => void,
  options: FetchOptions
): Promise<WholeResponse> {
  const { timeoutMs, totalMs, maxBytes, tooLarge = 'upstream.invalid', signal } = options
  const exchange: Exchange = {
    timeoutMs,
    collectBytes: maxBytes,
    collectOnly: true,
    isHead: false,
    startedAt: performance.now(),
    isGone: signal?.aborted === true
  }
  const leave = () => {
    exchange.isGone = true
    abort(exchange)
  }
  const timer =
    totalMs === undefined
      ? undefined
      : setTimeout(() => abort(exchange, new GatewayError('upstream.timeout')), totalMs)
  signal?.addEventListener('abort', leave, { once: true })
  try {
    return await new Promise((resolve, reject) => {
      dispatch(options, exchange, (error, response) => {
        if (response === undefined) return reject(error ?? new GatewayError('upstream.invalid'))
        const { status, headers, body } = response
        if (!(body instanceof Readable)) return resolve({ status, headers, body: body.bytes })
        body.destroy()
        reject(
          new GatewayError(tooLarge, {
            cause: new Error(`the answer is larger than ${maxBytes} bytes`)
          })
        )
      })
    })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener('abort', leave)
  }
}
