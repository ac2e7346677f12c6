/** The only sockets to back-ends: pools, time-outs, one retry of safe requests, and the names of failures. */
import { Readable } from 'node:stream'
import { Pool, type Dispatcher } from 'undici'
import type { UpstreamConfig } from '../config/routes.ts'
import { type ErrorCode, GatewayError } from '../errors.ts'
import { adopt } from '../observability/emitters.ts'
import { abort, Attempt, gone, type Answered, type Exchange, type Watcher } from './answer.ts'
import { upstreamError } from './failures.ts'
import { readSmallBody, countedBody } from './request-body.ts'

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

type RequestOptions = Omit<Dispatcher.DispatchOptions, 'headers'> & { headers: Record<PropertyKey, unknown> }
type RequestCallback = (error: null, answer: { statusCode: number, headers: Answered['headers'], body: Answered['body'] | FailedBody }) => void

/** Stands in the place of a body where there is no answer. Told as an error, the plugin would log it too, and wrap it. */
export class FailedBody {
  readonly error: GatewayError
  constructor (error: GatewayError) { this.error = error }
  destroy (): void {}
}

export type UpstreamPool = ReturnType<typeof createUpstream>
/** What routes and sign-in need of a back-end. */
export type Upstream = Pick<UpstreamPool, 'config' | 'origin' | 'base' | 'ask' | 'request' | 'send'>

/** A retry costs one, a request earns a tenth: at most 10 % more load on a back-end that is in trouble. */
const retryBudget = 10

type AskOptions = Omit<Dispatcher.DispatchOptions, 'body'> & { readonly body?: Dispatcher.DispatchOptions['body'] }
type Done = (error: GatewayError | null, answer?: Answered) => void

/** What an upstream has to do, and how many retries it may be asked for. */
interface Load {
  inFlight: number
  budget: number
}

/** One request: its attempts, and the one answer that it gets. */
class Call implements Watcher {
  readonly #pool: Pool
  readonly #asked: Dispatcher.DispatchOptions
  readonly #exchange: Exchange
  readonly #stallMs: number
  readonly #done: Done
  readonly #load: Load
  #retriesLeft: number
  #settled = false

  constructor (pool: Pool, options: AskOptions, exchange: Exchange, stallMs: number, retries: number, done: Done, load: Load) {
    this.#pool = pool
    // `reset: false`: undici would close the connection after each HEAD.
    this.#asked = { ...options, body: options.body ?? null, reset: false }
    this.#exchange = exchange
    this.#stallMs = stallMs
    this.#retriesLeft = retries
    this.#done = done
    this.#load = load
  }

  start (): void {
    const attempt = new Attempt(this.#exchange, this.#stallMs, this)
    try {
      this.#pool.dispatch(this.#asked, attempt)
    } catch (error) {
      attempt.fail(error)
    }
  }

  onAnswer (answer: Answered): void {
    this.#done(null, answer)
  }

  onFailed (error: unknown): void {
    const failure = upstreamError(error)
    if (this.#retriesLeft > 0 && this.#load.budget >= 1 && !this.#exchange.isGone && (failure.code === 'upstream.reset' || failure.code === 'upstream.refused')) {
      this.#load.budget -= 1
      this.#retriesLeft--
      return this.start()
    }
    this.onSettled()
    this.#done(failure)
  }

  onSettled (): void {
    if (!this.#settled) this.#load.inFlight--
    this.#settled = true
  }
}

/**
 * One back-end. Outlives the routes that use it; whoever made it closes it.
 * @param authority the PEM text of `config.ca`
 */
export function createUpstream (config: UpstreamConfig, authority?: string) {
  const { origin, pathname } = new URL(config.url)
  const pool = adopt(new Pool(origin, {
    connections: config.connections,
    pipelining: 1,
    keepAliveTimeout: 4000,
    keepAliveMaxTimeout: 60_000,
    // The first byte has a clock of its own below: undici's is only exact to a second.
    headersTimeout: 0,
    bodyTimeout: config.idleTimeout,
    maxHeaderSize: 16 * 1024,
    allowH2: false,
    connect: { timeout: config.connectTimeout, rejectUnauthorized: true, ...(authority !== undefined && { ca: authority }) }
  }))
  const load: Load = { inFlight: 0, budget: retryBudget }

  /**
   * Sends a request and gives one answer to `done`: an error of ours, or the answer as soon as it may go on.
   * A safe request whose connection broke before an answer is sent once more; nothing else ever is.
   */
  function ask (options: AskOptions, exchange: Exchange, done: Done): void {
    if (exchange.isGone) return done(gone())
    if (load.inFlight >= config.connections + config.queue) return done(new GatewayError('overloaded', { retryAfter: 1 }))
    load.inFlight++
    load.budget = Math.min(retryBudget, load.budget + 0.1)
    const isSafe = (options.method === 'GET' || options.method === 'HEAD') && options.body == null
    new Call(pool, options, exchange, config.idleTimeout, isSafe ? 1 : 0, done, load).start()
  }

  /** What the proxy plugin calls in the place of undici's own `request`. */
  function request (options: RequestOptions, callback: RequestCallback): void {
    const { [exchangeKey]: exchange, connection: _connection, 'transfer-encoding': _encoding, ...headers } = options.headers as Record<PropertyKey, unknown> & { [exchangeKey]: Exchange }
    const failed = (error: GatewayError) => callback(null, { statusCode: error.status, headers: {}, body: new FailedBody(error) })
    const forward = (body: Dispatcher.DispatchOptions['body']) => {
      ask({ method: options.method, path: options.path, headers: headers as Record<string, string>, body: body ?? null }, exchange, (error, answer) => {
        if (answer === undefined) failed(error ?? new GatewayError('upstream.invalid'))
        else callback(null, { statusCode: answer.status, headers: answer.headers, body: answer.body })
      })
    }
    const { body } = options
    if (!(body instanceof Readable)) return forward(typeof body === 'string' && body !== '' ? body : null)
    const length = headers['content-length'] === undefined ? undefined : Number(headers['content-length'])
    if (length !== undefined && length <= exchange.collectBytes) readSmallBody(body, length, (error, bytes) => bytes === undefined ? failed(error ?? new GatewayError('request.malformed')) : forward(bytes))
    else forward(length === undefined ? countedBody(body, exchange.maxBodyBytes) : body)
  }

  /**
   * A request of the gateway's own, its answer collected.
   * @throws GatewayError `upstream.*`, or `overloaded`
   */
  async function send ({ method, path, headers, body, timeoutMs, totalMs, maxBytes, tooLarge = 'upstream.invalid', signal }: SendOptions): Promise<Sent> {
    const exchange: Exchange = { timeoutMs, collectBytes: maxBytes, collectOnly: true, maxBodyBytes: 0, isHead: false, startedAt: performance.now(), isGone: signal?.aborted === true }
    const leave = () => {
      exchange.isGone = true
      abort(exchange)
    }
    const timer = totalMs === undefined ? undefined : setTimeout(() => abort(exchange, new GatewayError('upstream.timeout')), totalMs)
    signal?.addEventListener('abort', leave, { once: true })
    try {
      return await new Promise((answered, failed) => {
        ask({ method, path: (pathname === '/' ? '' : pathname.replace(/\/$/, '')) + path, headers, body: body ?? null }, exchange, (error, answer) => {
          if (answer === undefined) return failed(error ?? new GatewayError('upstream.invalid'))
          if (answer.body instanceof Readable) {
            answer.body.destroy()
            return failed(new GatewayError(tooLarge, { cause: new Error(`the answer is larger than ${maxBytes} bytes`) }))
          }
          answered({ status: answer.status, headers: answer.headers, body: answer.body.bytes })
        })
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
    inFlight: () => load.inFlight,
    /** Ends what is running. */
    close: async () => { await pool.destroy() },
    /** Lets what is running finish. */
    retire: async () => { await pool.close() }
  }
}
