/** The only sockets to back-ends: pools, time-outs, one retry of safe requests, and the names of failures. */
import { Readable } from 'node:stream'
import { Pool, type Dispatcher } from 'undici'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import { adopt } from '../observability/emitters.ts'
import { abort, Attempt, gone, type Answered, type Exchange, type Watcher } from './response.ts'
import { upstreamError } from './failures.ts'
import { ConnectionQueue } from './queue.ts'
import { readBody, watchRate } from './request-body.ts'

/** A body in chunks is collected up to here; one that is larger is streamed. */
const chunkedCollectBytes = 64 * 1024

/** Where the proxy plugin's header object carries the exchange from the route to the dispatcher. */
export const exchangeKey = Symbol('exchange')

export interface SendOptions {
  readonly method: string
  readonly path: string
  readonly headers: Record<string, string | string[]>
  readonly body?: string
  /** To the first byte. */
  readonly timeoutMs: number
  /** To the last byte; without it only a body that stalls ends. */
  readonly totalMs?: number
  readonly maxBytes: number
  /** The code for a larger answer; `upstream.invalid` without it. */
  readonly tooLarge?: ErrorCode
  /** Ends it where nobody waits for the answer any more. */
  readonly signal?: AbortSignal
}

export interface Sent {
  readonly status: number
  readonly headers: Record<string, string | string[] | undefined>
  readonly body: Buffer
}

type RequestOptions = Omit<Dispatcher.DispatchOptions, 'headers'> & {
  headers: Record<PropertyKey, unknown>
}
type RequestCallback = (
  error: null,
  answer: { statusCode: number; headers: Answered['headers']; body: Answered['body'] | FailedBody }
) => void

/** Stands in the place of a body where there is no answer. Told as an error, the plugin would log it too, and wrap it. */
export class FailedBody {
  readonly error: GatewayError
  constructor(error: GatewayError) {
    this.error = error
  }
  destroy(): void {}
}

export type UpstreamPool = ReturnType<typeof createUpstream>
/** What routes and sign-in need of a back-end. */
export type Upstream = Pick<UpstreamPool, 'config' | 'origin' | 'base' | 'ask' | 'request' | 'send'>

/** A retry costs one, a request earns a tenth: at most 10 % more load on a back-end that is in trouble. */
const retryBudget = 10

type AskOptions = Omit<Dispatcher.DispatchOptions, 'body'> & {
  readonly body?: Dispatcher.DispatchOptions['body']
}
type Done = (error: GatewayError | null, answer?: Answered) => void

/** How many retries an upstream may be asked for. */
interface Retries {
  budget: number
}

/** One request: its attempts, and the one answer that it gets. */
class Call implements Watcher {
  readonly #pool: Pool
  readonly #asked: Dispatcher.DispatchOptions
  readonly #exchange: Exchange
  readonly #stallMs: number
  readonly #done: Done
  readonly #queue: ConnectionQueue
  readonly #retries: Retries
  readonly #isUpload: boolean
  #retriesLeft: number
  #settled = false

  constructor(
    pool: Pool,
    queue: ConnectionQueue,
    retries: Retries,
    options: AskOptions,
    exchange: Exchange,
    stallMs: number,
    done: Done
  ) {
    this.#pool = pool
    // `reset: false`: undici would close the connection after each HEAD.
    this.#asked = { ...options, body: options.body ?? null, reset: false }
    this.#exchange = exchange
    this.#stallMs = stallMs
    const { method, body } = this.#asked
    const isSafe = (method === 'GET' || method === 'HEAD') && body === null
    this.#retriesLeft = isSafe ? 1 : 0
    this.#isUpload = body instanceof Readable
    this.#done = done
    this.#queue = queue
    this.#retries = retries
  }

  /** Starts, or waits for a connection. */
  begin(): void {
    if (this.#queue.tryTake(this.#isUpload)) return this.start()
    const { body } = this.#asked
    try {
      const leave = this.#queue.wait({
        bytes: typeof body === 'string' || Buffer.isBuffer(body) ? body.length : 0,
        isUpload: this.#isUpload,
        start: () => {
          // To wait is no time of the upstream's.
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
    const attempt = new Attempt(this.#exchange, this.#stallMs, this)
    try {
      this.#pool.dispatch(this.#asked, attempt)
    } catch (error) {
      attempt.fail(error, true)
    }
  }

  onAnswer(answer: Answered): void {
    this.#done(null, answer)
  }

  onFailed(error: unknown, isFree: boolean): void {
    const failure = upstreamError(error)
    const isBroken = failure.code === 'upstream.reset' || failure.code === 'upstream.refused'
    const mayRetry = this.#retriesLeft > 0 && this.#retries.budget >= 1 && !this.#exchange.isGone
    if (isBroken && mayRetry && isFree) {
      this.#retries.budget -= 1
      this.#retriesLeft--
      return this.start()
    }
    if (isFree) this.onSettled()
    this.#done(failure)
  }

  onSettled(): void {
    if (this.#settled) return
    this.#settled = true
    this.#queue.release(this.#isUpload)
  }
}

/** An answer that has begun may go on; what is still to come of the body is its own business. */
function endSlowUpload(body: Readable, exchange: Exchange): void {
  watchRate(body, () => {
    if (exchange.firstByteMs === undefined) abort(exchange, new GatewayError('request.timeout'))
  })
}

/**
 * One back-end. Outlives the routes that use it; whoever made it closes it.
 * @param authority the PEM text of `config.ca`
 */
export function createUpstream(config: UpstreamConfig, authority?: string) {
  const { origin, pathname } = new URL(config.url)
  const pool = adopt(
    new Pool(origin, {
      connections: config.connections,
      pipelining: 1,
      keepAliveTimeout: 4000,
      keepAliveMaxTimeout: 60_000,
      // The first byte has a clock of its own below: undici's is only exact to a second.
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
  const queue = new ConnectionQueue(config)
  const retries: Retries = { budget: retryBudget }

  /**
   * Sends a request and gives one answer to `done`: an error of ours, or the answer as soon as it may go on.
   * A safe request whose connection broke before an answer is sent once more; nothing else ever is.
   */
  function ask(options: AskOptions, exchange: Exchange, done: Done): void {
    if (exchange.isGone) return done(gone())
    retries.budget = Math.min(retryBudget, retries.budget + 0.1)
    new Call(pool, queue, retries, options, exchange, config.idleTimeout, done).begin()
  }

  /** What the proxy plugin calls in the place of undici's own `request`. */
  function request(options: RequestOptions, callback: RequestCallback): void {
    const {
      [exchangeKey]: exchange,
      'connection': _connection,
      'transfer-encoding': _encoding,
      ...headers
    } = options.headers as Record<PropertyKey, unknown> & { [exchangeKey]: Exchange }
    const failed = (error: GatewayError) =>
      callback(null, { statusCode: error.status, headers: {}, body: new FailedBody(error) })
    const forward = (body: Dispatcher.DispatchOptions['body']) => {
      ask(
        {
          method: options.method,
          path: options.path,
          headers: headers as Record<string, string>,
          body: body ?? null
        },
        exchange,
        (error, answer) => {
          if (answer === undefined) {
            // One that was refused never came to whoever ends it otherwise.
            if (body instanceof Readable) body.destroy()
            failed(error ?? new GatewayError('upstream.invalid'))
          } else
            callback(null, {
              statusCode: answer.status,
              headers: answer.headers,
              body: answer.body
            })
        }
      )
    }
    const { body } = options
    if (!(body instanceof Readable))
      return forward(typeof body === 'string' && body !== '' ? body : null)
    const length =
      headers['content-length'] === undefined ? undefined : Number(headers['content-length'])
    const bounds = {
      collectBytes: length === undefined ? chunkedCollectBytes : exchange.collectBytes,
      maxBytes: exchange.maxBodyBytes
    }
    readBody(body, length, bounds, (error, whole) => {
      if (whole === undefined) return failed(error ?? new GatewayError('request.malformed'))
      if (whole instanceof Readable) endSlowUpload(body, exchange)
      forward(whole)
    })
  }

  /**
   * A request of the gateway's own, its answer collected.
   * @throws GatewayError `upstream.*`, or `overloaded`
   */
  async function send({
    method,
    path,
    headers,
    body,
    timeoutMs,
    totalMs,
    maxBytes,
    tooLarge = 'upstream.invalid',
    signal
  }: SendOptions): Promise<Sent> {
    const exchange: Exchange = {
      timeoutMs,
      collectBytes: maxBytes,
      collectOnly: true,
      maxBodyBytes: 0,
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
      return await new Promise((answered, failed) => {
        ask(
          {
            method,
            path: (pathname === '/' ? '' : pathname.replace(/\/$/, '')) + path,
            headers,
            body: body ?? null
          },
          exchange,
          (error, answer) => {
            if (answer === undefined) return failed(error ?? new GatewayError('upstream.invalid'))
            if (answer.body instanceof Readable) {
              answer.body.destroy()
              return failed(
                new GatewayError(tooLarge, {
                  cause: new Error(`the answer is larger than ${maxBytes} bytes`)
                })
              )
            }
            answered({ status: answer.status, headers: answer.headers, body: answer.body.bytes })
          }
        )
      })
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', leave)
    }
  }

  return {
    /** Scheme, host and port. */
    origin,
    /** What stands before every upstream path, without a slash at its end. */
    base: pathname.replace(/\/$/, ''),
    config,
    ask,
    request,
    send,
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
